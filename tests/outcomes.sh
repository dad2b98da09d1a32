#!/bin/sh
# tests/outcomes.sh FILE: sums up what tests wrote into FILE (tests/laboratory/outcomes.rs): which were skipped, and what was
# tried again.
set -u
count() { grep -c "^$1 " "$2" 2>/dev/null || true; }
file=$1
[ -e "$file" ] || : >"$file"
sort "$file" | sed 's/^\([a-z]*\) /  \1  /'
echo "tests that were skipped: $(count skipped "$file"); tried again: $(count retried "$file")"
