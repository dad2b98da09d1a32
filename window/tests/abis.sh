#!/bin/sh
# Programs of three ABIs on one store, at once: abis.sh COMPILER SOURCE ROUNDS [EXEC...]. EXEC starts x32 programs.
set -eu
compiler=$1 source=$2 rounds=$3
shift 3
place=$(mktemp -d -p "$([ -w /dev/shm ] && echo /dev/shm || echo /tmp)")
trap 'rm -rf "$place"' EXIT
for abi in 64 x32 32; do
    # shellcheck disable=SC2086 # a list of options
    "$compiler" -m$abi -idirafter /usr/include/x86_64-linux-gnu -std=c17 -O2 -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 -DNDEBUG \
        -I"$source/include" "$source"/src/*.c "$source/tests/session.c" -pthread -o "$place/session-$abi"
done
session() {
    if [ "$1" = x32 ]; then
        shift
        $start "$place/session-x32" "$place/store" "$@"
    else
        abi=$1
        shift
        "$place/session-$abi" "$place/store" "$@"
    fi
}
start=$*
abis="64 32"
if session x32 create 2>"$place/error"; then
    abis="64 x32 32"
    rm "$place/store"
elif [ -n "$start" ]; then
    cat "$place/error" >&2
    echo "x32 programs do not start with $start" >&2
    exit 1
else
    echo "x32 programs do not start here: without x32"
fi
session 32 create
jobs=
for abi in $abis; do
    session "$abi" transfer "$rounds" &
    jobs="$jobs $!"
    session "$abi" watch $((rounds / 4)) &
    jobs="$jobs $!"
done
for job in $jobs; do
    wait "$job"
done
first=$(session 64 digest)
for abi in $abis; do
    [ "$(session "$abi" digest)" = "$first" ]
done
echo "one store in the ABIs $abis: $first"
