#!/bin/sh
# tests/outcomes.sh FILE <LIST: sums up what tests wrote into FILE (tests/laboratory/outcomes.rs): which were skipped, and what was
# tried again. LIST is the test harness's list of the tests that take long, which `make test-all` runs.
set -u
count() { grep -c "^$1 " "$2" 2>/dev/null || true; }
file=$1
[ -e "$file" ] || : >"$file"
sort "$file" | sed 's/^\([a-z]*\) /  \1  /'
long=$(sed -n 's/: test$//p' | sort)
echo "$long" | sed 's/^/  left to `make test-all PARTS=more`  /'
echo "tests that were skipped: $(count skipped "$file"); left to \`make test-all\`: $(echo "$long" | grep -c .); tried again: $(count retried "$file")"
