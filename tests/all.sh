#!/bin/sh
# Every test: what `make test` runs, and what takes too long to run at every change. Every part runs, even if an earlier
# one failed; the summary lists them all. `tests/all.sh PART...` runs those parts alone; `--list` lists them.
#
# `make bench` is no part: it measures, for hours, on a machine that does nothing else. That the benchmarks work at all
# is tested by `make test`, which runs them with few rounds.
set -u
cd "$(dirname "$0")/.."

CARGO=${CARGO:-cargo}
wanted=" $* "
results=$(mktemp)
trap 'rm -f "$results"' EXIT

is_wanted() {
    if [ "$wanted" = " --list " ]; then
        echo "$1: $2"
        return 1
    fi
    case "$wanted" in
    "  " | *" $1 "*) return 0 ;;
    *) return 1 ;;
    esac
}

# part NAME REASON COMMAND...: the reason says why the part is here.
part() {
    name=$1 reason=$2
    shift 2
    is_wanted "$name" "$reason" || return 0
    printf '\n== %s: %s\n' "$name" "$reason"
    began=$(date +%s)
    if "$@"; then
        outcome=passed
    else
        outcome=failed
    fi
    echo "$outcome $name, $(($(date +%s) - began)) s" >>"$results"
}

# skipped NAME REASON WHY
skipped() {
    is_wanted "$1" "$2" || return 0
    echo "skipped $1: $3" >>"$results"
}

# fetched NAME REASON INSTALL WHY COMMAND...: a part for which packaging/install.sh INSTALL fetches something first. WHY
# it is skipped is printed where that fails.
fetched() {
    name=$1 reason=$2 install=$3 why=$4
    shift 4
    is_wanted "$name" "$reason" || return 0
    if sh packaging/install.sh "$install"; then
        part "$name" "$reason" "$@"
    else
        skipped "$name" "$reason" "$why"
    fi
}

RUNTIME_SAYS=the_runtime_says_what_a_kernel_with_x32_says

x32_caught() {
    X32RUN_OPTIONS=$1 "$CARGO" test --locked --package widthwise --test oracle -- --exact "$RUNTIME_SAYS"
}

# glibc 2.38 and later calls what 2.36 does not: clone3 with CLONE_CLEAR_SIGHAND in posix_spawn, system and popen.
x32_newer_libc() {
    WIDTHWISE_LANE=x32-newer-libc WIDTHWISE_X32_SYSROOT="${CARGO_TARGET_DIR:-$PWD/target}/x32-newer-libc" \
        "$CARGO" test --locked --package widthwise --test oracle -- --exact "$RUNTIME_SAYS" \
        real_programs_print_what_they_print_on_x86_64
}

# Only since Linux 6.7 can a kernel's i386 entry be switched off on its command line.
x32_without_i386() {
    WIDTHWISE_LANE=x32-without-i386 "$CARGO" test --locked --package widthwise --test oracle without_the_i386_entry
}

# A C library with other sites of system calls, other threads and another way to cancel them.
x32_musl() {
    WIDTHWISE_LANE=x32-musl "$CARGO" test --locked --package widthwise --test oracle with_musl
}

# What is marked `ignore`, and the tests that have more cases here.
more() {
    make --no-print-directory test-long
    result=$?
    WIDTHWISE_LANE=more "$CARGO" test --locked --no-fail-fast --package widthwise --test whole_machine --test command_line -- \
        one_binary_under_two_names scale::members thousands_of_children whose_cpus_were_used_by_others \
        distinguished_from_one_by_the_abi && return $result
}

sim_bench() {
    start=
    if [ "$1" = x32 ]; then
        "$CARGO" build --locked --package widthwise || return 1
        start="$PWD/target/debug/widthwise exec"
    fi
    (cd sim && cmake --preset "$1" >/dev/null && cmake --build --preset "$1" --parallel 2) || return 1
    for program in "switches 1" "event_lists 1" memory "mm1 10000" "work_precision 1"; do
        # shellcheck disable=SC2086 # a command and its argument
        [ ! -x "target/sim/$1/bench/${program% *}" ] || $start target/sim/$1/bench/$program || return 1
    done
}

# A complete preset, as users build it; `make test-sim` builds the quick ones.
sim_full() {
    starter=
    if [ "$1" = x32 ]; then
        "$CARGO" build --locked --package widthwise || return 1
        starter="${CARGO_TARGET_DIR:-$PWD/target}/debug/widthwise;exec"
    fi
    (cd sim && cmake --preset "$1" "-DWIDTHWISE_EXEC=$starter" >/dev/null &&
        cmake --build --preset "$1" --parallel 2 && ctest --preset "$1" --parallel 2)
}

sim_compiler() {
    sh sim/tests/compilers.sh "$1" sim "${CARGO_TARGET_DIR:-target}/sim/$1"
}

# In a system that has the compiler. Copies keep their times: what has not changed is not built again.
sim_compiler_in_trixie() {
    root=${CARGO_TARGET_DIR:-target}/trixie
    become=
    [ "$(id -u)" -eq 0 ] || become=sudo
    $become mkdir -p "$root/widthwise" || return 1
    $become rm -rf "$root/widthwise/sim" || return 1
    $become cp -rp sim "$root/widthwise/" || return 1
    $become chroot "$root" sh /widthwise/sim/tests/compilers.sh "$1" /widthwise/sim "/widthwise/$1"
}

# A thousand kills of a writer, tens of thousands of power cuts and damaged stores.
window_long() {
    "$CARGO" build --locked --package widthwise || return 1
    x32_starter="${CARGO_TARGET_DIR:-$PWD/target}/debug/widthwise;exec"
    starter=
    [ "$1" != x32 ] || starter=$x32_starter
    build="${CARGO_TARGET_DIR:-$PWD/target}/window/long-$1"
    (cd window && cmake --preset "$1" -B "$build" -DWIDTHWISE_WINDOW_LONG_TESTS=ON "-DWIDTHWISE_EXEC=$starter" \
        "-DWIDTHWISE_X32_EXEC=$x32_starter" >/dev/null) &&
        cmake --build "$build" --parallel 2 && ctest --test-dir "$build" --output-on-failure --parallel 2
}

# A table of 20 GB, of which 400 MB are written, in programs with pointers of 32 bits.
window_table() {
    "$CARGO" build --locked --package widthwise || return 1
    place=$(mktemp -d)
    (cd window && for preset in i386 x32; do
        cmake --preset "$preset" >/dev/null && cmake --build --preset "$preset" --target table || exit 1
    done) && target/window/i386/examples/table "$place/store" 20 20000 &&
        target/debug/widthwise exec target/window/x32/examples/table "$place/store" 20 100000
    result=$?
    rm -rf "$place"
    return $result
}

window_fuzz() {
    (cd window && cmake --preset fuzz >/dev/null && cmake --build --preset fuzz --target store_fuzzer) &&
        target/window/fuzz/tests/store_fuzzer -max_total_time=60 -timeout=60
}

# Why the fuzz targets cannot run here, or nothing.
why_no_fuzzing() {
    if ! RUSTUP_TOOLCHAIN=nightly rustc --version 2>/dev/null | grep -q nightly; then
        echo "no nightly toolchain: rustup toolchain install nightly"
    elif ! "$CARGO" fuzz --version >/dev/null 2>&1; then
        echo "no cargo-fuzz: cargo install cargo-fuzz"
    fi
}

fuzz() {
    RUSTUP_TOOLCHAIN=nightly "$CARGO" fuzz run "$1" -- -max_total_time=60
}

part test "what continuous integration runs" make --no-print-directory test
part lint "continuous integration runs it as well" make --no-print-directory lint
part x32-kernel "a kernel under emulation runs every x32 program; \`make test\` boots a core of them" \
    make --no-print-directory test-x32
part x32-stress "ten minutes of everything at once through the x32 runtime; \`make test\` takes eight seconds, \`make soak\` an hour" \
    make --no-print-directory soak SOAK_SECONDS=600
for option in seccomp no-rewrite ahead; do
    part "x32-$option" "the x32 runtime catches calls in another way; \`make test\` tests the usual one" \
        x32_caught "--$option"
done
fetched x32-newer-libc "the x32 programs and real ones with the C library of the next Debian; \`make test\` uses this system's" \
    newer-libc "its packages or sources could not be fetched from Debian's archive" x32_newer_libc
fetched x32-musl "the x32 programs with musl; \`make test\` uses glibc" \
    musl "its source could not be fetched from Debian's archive, or built" x32_musl
fetched x32-without-i386 "a kernel under emulation that has no i386 entry, which this one has" \
    newer-kernel "its package could not be fetched from Debian's archive" x32_without_i386
for preset in x86-64 x32 i386 sanitize; do
    part "sim-full-$preset" "the simulation library as users build it, and its longest tests; \`make test\` builds quick presets" \
        sim_full "$preset"
done
for abi in i386 x32; do
    part "sim-bench-$abi" "the simulation's benchmarks in this ABI; \`make test\` runs those of x86-64" sim_bench "$abi"
done
for preset in x86-64 x32 i386 sanitize; do
    part "window-long-$preset" "a thousand kills of a writer and tens of thousands of power cuts; \`make test\` has some tens" \
        window_long "$preset"
done
part window-table "a table of 20 GB in 32-bit programs: some 500 MB of the disk" window_table
fetched window-fuzz "a minute of fuzzing the reader of stores; \`make test\` has some hundred damaged ones" \
    window-fuzz "Debian's archive has no libFuzzer of clang 14 here, or cannot be reached" window_fuzz
for compiler in gcc-11 gcc-12 clang-14 clang-15 clang-16 clang-19 gcc-13 clang-17 clang-18; do
    case $compiler in
    gcc-13 | clang-17 | clang-18) needed=sim-trixie builds=sim_compiler_in_trixie ;;
    *) needed=sim-$compiler builds=sim_compiler ;;
    esac
    fetched "sim-$compiler" "the simulation library by this compiler; \`make test\` uses the system's gcc" \
        "$needed" "Debian's archive has no such package here, or cannot be reached" $builds "$compiler"
done
part more "tests that take longest, and shapes of threads, children and recordings of which \`make test\` has fewer" more
part kernels "kernels of both widths, fetched and booted, and programs that fail there" \
    env WIDTHWISE_LANE=kernels "$CARGO" test --locked --package widthwise --test command_line -- kernels:: kernel_failures:: machine_counters:: operations_on_kernels::
fetched documentation "commands of the documentation that fetch and build packages, and those of the benchmarks" bench \
    "the tools that the benchmarks compare with cannot be installed" \
    env WIDTHWISE_LANE=documentation "$CARGO" test --locked --package widthwise --test command_line -- \
    documentation::the_commands_of_the_documentation_that_take_minutes documentation::the_commands_of_the_benchmarks
part bench-quick "every benchmark with so few runs that it means nothing: they must not rot" \
    env WIDTHWISE_LANE=bench-quick "$CARGO" test --locked --package widthwise-bench --test quick
part doc "the API documentation is built by no test" make --no-print-directory doc
part demo "a campaign of minutes; \`make test\` types the README's other commands" make --no-print-directory demo
part fuzz-build "the fuzz targets are a workspace of their own, which \`make test\` does not build" \
    "$CARGO" check --locked --manifest-path fuzz/Cargo.toml
reason=$(why_no_fuzzing)
for target in fuzz/fuzz_targets/*.rs; do
    target=$(basename "$target" .rs)
    if [ -n "$reason" ]; then
        skipped "fuzz-$target" "a minute of fuzzing" "$reason"
    else
        part "fuzz-$target" "a minute of fuzzing" fuzz "$target"
    fi
done

[ "$wanted" != " --list " ] || exit 0
count() { grep -c "^$1 " "$results"; }
printf '\n== summary\n'
sed 's/^\([a-z]*\) /\1  /' "$results"
echo "$(wc -l <"$results") parts: $(count passed) passed, $(count failed) failed, $(count skipped) skipped"
if [ ! -s "$results" ]; then
    echo "error: no part is called that; \`tests/all.sh --list\` lists them" >&2
    exit 2
fi
[ "$(count failed)" -eq 0 ]
