#!/bin/sh
# Installs the library, then builds and runs the examples against what was installed, as another project would.
#   package.sh CMAKE BUILD SOURCE ABI_FLAGS [EXEC...]
set -eu
cmake=$1 build=$2 source=$3 flags=$4
shift 4
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
"$cmake" --install "$build" --prefix "$place/installed" > "$place/log"
"$cmake" -S "$source/examples" -B "$place/examples" -DCMAKE_PREFIX_PATH="$place/installed" -DCMAKE_CXX_FLAGS="$flags" \
    >> "$place/log" || { cat "$place/log"; exit 1; }
"$cmake" --build "$place/examples" >> "$place/log" 2>&1 || { cat "$place/log"; exit 1; }
"$@" "$place/examples/plain_function" | tail -1 | grep -qx ' 7.5  Charles is done'
"$@" "$place/examples/shop" | grep -q 'Customers who lose patience: .* (95 %, 100 days)'
# Half of the time, by symmetry: ten degrees outside, thirty with the heater on, and switched about twenty.
"$@" "$place/examples/workshop" | grep -q 'the heater is on 0\.\(49\|50\)'
