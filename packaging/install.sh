#!/bin/sh
# Installs from Debian's archive what a `make` word needs and this machine does not have. Touches no apt configuration.
#
# The multilib packages are the versioned ones: the unversioned gcc-multilib conflicts with every cross compiler.
set -eu

gcc_major=$( (gcc -dumpversion 2>/dev/null || echo 12) | cut -d. -f1)

case "${1:-}" in
build) wanted="gcc libc6-dev" ;;
demo) wanted="gcc g++ make dpkg-dev tcl gcc-$gcc_major-multilib g++-$gcc_major-multilib libc6-dev-x32 hwloc-nox valgrind" ;;
test) wanted="gcc g++ make dpkg-dev tcl procps sqlite3 gcc-$gcc_major-multilib g++-$gcc_major-multilib libc6-dev-x32 \
    hwloc-nox clang libjemalloc2 chromium cmake meson ninja-build jq hyperfine valgrind gdb linux-perf binutils \
    util-linux qemu-system-x86 qemu-user xz-utils g++-$gcc_major-powerpc64-linux-gnu g++-$gcc_major-powerpc-linux-gnu \
    heaptrack libmimalloc2.0 libtcmalloc-minimal4 libboost-context-dev pkg-config" ;;
test-window) wanted="gcc g++ cmake ninja-build pkg-config gcc-$gcc_major-multilib g++-$gcc_major-multilib libc6-dev-x32" ;;
window-fuzz) wanted="cmake ninja-build clang-14 clang libclang-rt-14-dev" ;;
test-x32) wanted="gcc g++ gcc-$gcc_major-multilib g++-$gcc_major-multilib libc6-dev-x32 qemu-system-x86" ;;
newer-kernel) wanted="qemu-system-x86 gcc gcc-$gcc_major-multilib libc6-dev-x32" ;;
musl) wanted="gcc make dpkg-dev gcc-$gcc_major-multilib libc6-dev-x32" ;;
newer-libc) wanted="gcc g++ make dpkg-dev gcc-$gcc_major-multilib g++-$gcc_major-multilib libc6-dev-x32" ;;
test-sim) wanted="gcc g++ cmake ninja-build gcc-$gcc_major-multilib g++-$gcc_major-multilib libc6-dev-x32 libboost-context-dev" ;;
sim-gcc-*) wanted="g++-${1#sim-gcc-} cmake make libboost-context-dev" ;;
sim-clang-*) wanted="clang-${1#sim-clang-} g++ cmake make libboost-context-dev" ;;
sim-trixie) wanted="debootstrap" ;;
lint) wanted="clang-format" ;;
bench) wanted="gcc g++ make cmake hyperfine gcc-$gcc_major-multilib g++-$gcc_major-multilib libc6-dev-x32 valgrind util-linux heaptrack \
    qemu-system-x86 qemu-user xz-utils g++-$gcc_major-powerpc64-linux-gnu g++-$gcc_major-powerpc-linux-gnu libboost-context-dev \
    python3-venv linux-perf binutils dwarves dpkg-dev" ;;
*)
    echo "usage: $0 build|demo|test|test-sim|test-window|window-fuzz|test-x32|newer-libc|newer-kernel|musl|sim-gcc-MAJOR|sim-clang-MAJOR|sim-trixie|lint|bench" >&2
    exit 2
    ;;
esac

as_root() {
    if [ "$(id -u)" -eq 0 ]; then
        "$@"
    elif command -v sudo >/dev/null 2>&1; then
        sudo "$@"
    else
        echo "error: as root: $*" >&2
        exit 1
    fi
}

# One index that fails, as mirrors do in the middle of a sync, need not fail everything.
update_indexes() {
    as_root apt-get update -qq || echo "warning: not every package index could be read" >&2
}

# Debian's kernel has x32 built in (booted with syscall.x32=y): the oracle of the x32 runtime runs it under emulation.
# Only the kernel itself is taken out of the package, into the build folder; nothing is installed.
fetch_x32_kernel() {
    folder=${CARGO_TARGET_DIR:-target}/x32-kernel
    for kernel in "$folder"/boot/vmlinuz-*; do
        [ ! -s "$kernel" ] || return 0
    done
    image=$(apt-cache depends linux-image-amd64 2>/dev/null |
        sed -n 's/^ *Depends: \(linux-image-[0-9].*-amd64\)$/\1/p' | head -n 1)
    if [ -z "$image" ]; then
        echo "error: no package linux-image-amd64 in this system's indexes, whose kernel has x32: put" >&2
        echo "    boot/vmlinuz-* of Debian 12's linux-image-6.1.0-*-amd64 into $folder" >&2
        exit 1
    fi
    echo "fetching $image, to boot under emulation"
    rm -rf "$folder.new"
    mkdir -p "$folder.new"
    # An index older than the mirror names a file that is no longer there.
    (cd "$folder.new" && apt-get download -qq "$image" 2>/dev/null) || {
        update_indexes
        (cd "$folder.new" && apt-get download -qq "$image")
    }
    dpkg-deb --fsys-tarfile "$folder.new"/*.deb | tar -x -C "$folder.new" --wildcards './boot/vmlinuz-*'
    rm -f "$folder.new"/*.deb
    rm -rf "$folder"
    mv "$folder.new" "$folder"
}

# private_apt FOLDER deb|deb-src SUITE: an apt with lists of its own in that folder, for `apt-get $private`: neither apt's
# configuration nor the system changes.
private_apt() {
    mkdir -p "$1/apt/lists/partial" "$1/apt/cache/archives/partial"
    apt=$(cd "$1/apt" && pwd)
    echo "$2 [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian $3 main" \
        >"$apt/sources.list"
    : >"$apt/status"
    private="-o Dir::Etc::SourceList=$apt/sources.list -o Dir::Etc::SourceParts=/dev/null
        -o Dir::State::Lists=$apt/lists -o Dir::State::status=$apt/status -o Dir::Cache=$apt/cache"
}

# newer FOLDER PACKAGES: unpacks packages of the next Debian, by an apt of their own; nothing is installed. Of
# linux-image-amd64 it is the kernel on which that depends.
newer() {
    folder=$1
    shift
    rm -rf "$folder.new"
    mkdir -p "$folder.new/root"
    private_apt "$folder.new" deb trixie
    # shellcheck disable=SC2086 # a list of options
    (cd "$apt" && apt-get $private update -qq -o APT::Update::Error-Mode=any && for package; do
        if [ "$package" = linux-image-amd64 ]; then
            package=$(apt-cache $private depends "$package" |
                sed -n 's/^ *Depends: \(linux-image-[0-9].*-amd64\)$/\1/p' | head -n 1)
        fi
        apt-get $private download -qq "$package" || exit 1
    done) || {
        rm -rf "$folder.new"
        echo "error: Debian's archive of trixie cannot be reached" >&2
        exit 1
    }
    for package in "$apt"/*.deb; do
        dpkg-deb -x "$package" "$folder.new/root"
    done
    rm -rf "$folder"
    mv "$folder.new/root" "$folder"
    rm -rf "$folder.new"
}

# The next Debian with its compilers, as a system of its own in the build folder, entered by chroot.
fetch_trixie() {
    folder=${CARGO_TARGET_DIR:-target}/trixie
    [ ! -e "$folder/complete" ] || return 0
    echo "fetching a system of trixie, of some 1.5 GiB, into $folder"
    as_root rm -rf "$folder"
    as_root debootstrap --variant=minbase --include=g++-13,clang-17,clang-18,cmake,make trixie "$folder" \
        http://deb.debian.org/debian >"$folder.log" 2>&1 || {
        tail -n 3 "$folder.log" >&2
        echo "error: no system of trixie could be made from Debian's archive; $folder.log says why" >&2
        exit 1
    }
    as_root touch "$folder/complete"
}

fetch_newer_libc() {
    folder=${CARGO_TARGET_DIR:-target}/x32-newer-libc
    [ ! -e "$folder/usr/libx32/libc.so.6" ] || return 0
    newer "$folder" libc6-x32 libc6-dev-x32 libc6-dev linux-libc-dev libx32gcc-s1 libx32stdc++6
    # The linker scripts name /libx32.
    ln -sfn usr/libx32 "$folder/libx32"
}

# Of which IA32_EMULATION can be switched off on the command line, since Linux 6.7.
fetch_newer_kernel() {
    folder=${CARGO_TARGET_DIR:-target}/x32-newer-kernel
    for kernel in "$folder"/boot/vmlinuz-*; do
        [ ! -s "$kernel" ] || return 0
    done
    newer "$folder" linux-image-amd64
    # Its modules are not used.
    rm -rf "${folder:?}/usr" "${folder:?}/lib"
}

# musl for x32, static, from Debian's source.
build_musl() {
    folder=${CARGO_TARGET_DIR:-target}/x32-musl
    [ ! -e "$folder/lib/libc.a" ] || return 0
    rm -rf "$folder.new"
    private_apt "$folder.new" deb-src bookworm
    # shellcheck disable=SC2086 # a list of options
    (cd "$apt" && apt-get $private update -qq -o APT::Update::Error-Mode=any && apt-get $private source -qq musl) || {
        rm -rf "$folder.new"
        echo "error: Debian's archive cannot be reached" >&2
        exit 1
    }
    (cd "$apt"/musl-*/ && CC="gcc -mx32" ./configure --prefix=/ --target=x86_64-linux-muslx32 --disable-shared >configured &&
        make -s -j2 AR=ar RANLIB=ranlib CROSS_COMPILE= DESTDIR="$apt/root" install >built 2>&1) || {
        echo "error: musl does not build; see $apt/musl-*/built" >&2
        exit 1
    }
    # The kernel's headers, and nothing else of the system's.
    mkdir "$apt/root/kernel"
    ln -s /usr/include/linux /usr/include/asm-generic /usr/include/x86_64-linux-gnu/asm "$apt/root/kernel"
    rm -rf "$folder"
    mv "$apt/root" "$folder"
    rm -rf "$folder.new"
}

# The sources of the programs that tests/x32/real.rs lists, as they were before Debian's patches: those touch what
# `configure` is made from, and it would have to be made again.
fetch_x32_sources() {
    folder=${CARGO_TARGET_DIR:-target}/x32-sources
    absent=""
    for source in $(sed -n 's/^ *source: "\(..*\)",$/\1/p' tests/x32/real.rs | sort -u); do
        [ -d "$folder/$source" ] || absent="$absent $source"
    done
    [ -n "$absent" ] || return 0
    mkdir -p "$folder"
    private_apt "$folder" deb-src bookworm
    # shellcheck disable=SC2086 # lists of options and of names
    (cd "$apt" && apt-get $private update -qq -o APT::Update::Error-Mode=any &&
        apt-get $private source -qq --download-only $absent && for source in $absent; do
        dpkg-source --no-check --skip-patches -x "$source"_*.dsc new >unpacked 2>&1 && mv new "../$source" || exit 1
    done) || {
        echo "error: Debian's archive cannot be reached" >&2
        exit 1
    }
}

missing=""
for package in $wanted; do
    # hwloc-nox and hwloc hold the same tools; either will do.
    if [ "$package" = hwloc-nox ] && command -v lstopo-no-graphics >/dev/null 2>&1; then
        continue
    fi
    status=$(dpkg-query -W -f '${Status}' "$package" 2>/dev/null || true)
    [ "$status" = "install ok installed" ] || missing="$missing $package"
done
if [ -n "$missing" ]; then
    echo "installing$missing"
    export DEBIAN_FRONTEND=noninteractive
    update_indexes
    # shellcheck disable=SC2086 # a list of names
    as_root apt-get install -qq -y --no-install-recommends $missing >/dev/null
fi

case "$1" in
test | test-x32 | bench) fetch_x32_kernel ;;
newer-libc)
    fetch_newer_libc
    fetch_x32_sources
    ;;
sim-trixie) fetch_trixie ;;
newer-kernel) fetch_newer_kernel ;;
musl) build_musl ;;
esac
