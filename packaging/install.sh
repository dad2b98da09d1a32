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
    hwloc-nox clang libjemalloc2 chromium-headless-shell cmake meson ninja-build jq hyperfine valgrind gdb linux-perf binutils \
    util-linux qemu-system-x86 qemu-user xz-utils g++-$gcc_major-powerpc64-linux-gnu g++-$gcc_major-powerpc-linux-gnu \
    heaptrack libmimalloc2.0 libtcmalloc-minimal4 libboost-context-dev pkg-config python3-jsonschema" ;;
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

# shellcheck source=packaging/fetch.sh
. "$(dirname "$0")/fetch.sh"

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
