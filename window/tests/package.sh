#!/bin/sh
# Installs the library, then builds and runs the examples against what was installed, as another project would.
# Options of the ABI come from the file of pkg-config. EXEC starts the programs.
#   package.sh CMAKE BUILD SOURCE [EXEC...]
set -eu
cmake=$1 build=$2 source=$3
shift 3
place=$(mktemp -d -p "$([ -w /dev/shm ] && echo /dev/shm || echo /tmp)")
trap 'rm -rf "$place"' EXIT
"$cmake" --install "$build" --prefix "$place/installed" >"$place/log"
PKG_CONFIG_PATH=$(dirname "$(find "$place/installed" -name widthwise-window.pc)")
export PKG_CONFIG_PATH
# The folder may be moved: the file names it relative to itself.
# shellcheck disable=SC2046 # a list of options
cc -O2 "$source/examples/table.c" -o "$place/table" $(pkg-config --cflags --libs widthwise-window)
# shellcheck disable=SC2046
c++ -O2 -std=c++17 "$source/examples/list.cpp" -o "$place/list" $(pkg-config --cflags --libs widthwise-window)
# shellcheck disable=SC2046
if c++ -std=c++14 -fsyntax-only "$source/examples/list.cpp" $(pkg-config --cflags widthwise-window) 2>"$place/log"; then
  echo "C++14 is not refused" >&2
  exit 1
fi
grep -q 'widthwise/window.hpp needs C++17' "$place/log"
# shellcheck disable=SC2046
cc -O2 "$source/examples/sparse.c" -o "$place/sparse" $(pkg-config --cflags --libs widthwise-window)
"$@" "$place/table" "$place/store" 20 2000 | grep -q '^2000 of 2000 keys found'
"$@" "$place/list" "$place/list.store" | grep -q '^1 run'
"$@" "$place/list" "$place/list.store" | grep -q '^2 runs'
"$@" "$place/sparse" "$place/sparse.store" 5 1249999999 >"$place/log"
"$@" "$place/sparse" "$place/sparse.store" 1249999999 | grep -q '^1249999999: 2$'
