#!/bin/sh
# Installs from Debian's archive what a `make` word needs and this machine lacks. Touches no apt configuration.
#
# The multilib packages are the versioned ones: the unversioned gcc-multilib conflicts with every cross compiler.
set -eu

gcc_major=$( (gcc -dumpversion 2>/dev/null || echo 12) | cut -d. -f1)

case "${1:-}" in
build) wanted="gcc libc6-dev" ;;
demo) wanted="gcc g++ make dpkg-dev tcl gcc-$gcc_major-multilib g++-$gcc_major-multilib libc6-dev-x32 hwloc-nox valgrind" ;;
test) wanted="gcc g++ make dpkg-dev tcl procps sqlite3 gcc-$gcc_major-multilib g++-$gcc_major-multilib libc6-dev-x32 \
    hwloc-nox clang libjemalloc2 chromium cmake meson ninja-build jq hyperfine valgrind" ;;
lint) wanted="clang-format" ;;
bench) wanted="gcc g++ hyperfine" ;;
*)
    echo "usage: $0 build|demo|test|lint|bench" >&2
    exit 2
    ;;
esac

missing=""
for package in $wanted; do
    # hwloc-nox and hwloc hold the same tools; either will do.
    if [ "$package" = hwloc-nox ] && command -v lstopo-no-graphics >/dev/null 2>&1; then
        continue
    fi
    status=$(dpkg-query -W -f '${Status}' "$package" 2>/dev/null || true)
    [ "$status" = "install ok installed" ] || missing="$missing $package"
done
[ -n "$missing" ] || exit 0

echo "installing$missing"
as_root=""
if [ "$(id -u)" -ne 0 ]; then
    if ! command -v sudo >/dev/null 2>&1; then
        echo "error: as root: apt-get install$missing" >&2
        exit 1
    fi
    as_root=sudo
fi
export DEBIAN_FRONTEND=noninteractive
# One index that fails, as mirrors do in the middle of a sync, need not fail everything.
$as_root apt-get update -qq || echo "warning: not every package index could be read" >&2
# shellcheck disable=SC2086 # a list of names
$as_root apt-get install -qq -y --no-install-recommends $missing >/dev/null
