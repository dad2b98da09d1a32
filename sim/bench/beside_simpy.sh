#!/bin/sh
# M/M/1 with a million customers, ours and SimPy's in turn.
#   bench/beside_simpy.sh BUILD [PYTHON [ROUNDS]]      (PYTHON needs the package simpy)
set -eu
build=$1
python=${2:-python3}
rounds=${3:-3}
here=$(dirname "$0")
"$python" -c 'import simpy' || { echo "error: $python has no simpy: $python -m pip install simpy" >&2; exit 1; }
for round in $(seq "$rounds"); do
    ours=$("$build/bench/mm1")
    theirs=$("$python" "$here/mm1_simpy.py")
    echo "round $round  ours $ours  simpy $theirs" |
        awk '{ for (i = 1; i <= NF; i++) { if ($i == "ours") a = $(i + 1); if ($i == "simpy") b = $(i + 1) }
               printf "%s  -> 1/%.1f of SimPy\n", $0, b / a }'
done
