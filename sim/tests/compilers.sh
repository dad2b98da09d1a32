#!/bin/sh
# Builds the library by one compiler, without a warning, and runs its tests: compilers.sh COMPILER SOURCE BUILD.
# COMPILER is gcc-11, clang-14, ...
set -eu
case "$1" in
gcc-*) compiler=g++-${1#gcc-} ;;
clang-*) compiler=clang++-${1#clang-} ;;
*)
    echo "usage: $0 gcc-MAJOR|clang-MAJOR SOURCE BUILD" >&2
    exit 2
    ;;
esac
cmake -S "$2" -B "$3" "-DCMAKE_CXX_COMPILER=$compiler" -DCMAKE_BUILD_TYPE=Release -DWIDTHWISE_ABI=x86-64 >/dev/null
cmake --build "$3" --parallel 2
ctest --test-dir "$3" --output-on-failure --parallel 2
