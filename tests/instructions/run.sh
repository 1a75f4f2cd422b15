#!/usr/bin/env bash
# Instructions per call of the shared library, counted by callgrind and compared with counts.txt.
#
#     run.sh           compares; a case that needs over 10% more instructions fails
#     run.sh accept    writes the new counts to counts.txt
#
# `make instructions` and `make instructions-accept` build the library first. Needs SHARED, the
# library, and TARGET, a directory for scratch files. Counts differ between machines far less than
# times do: the same library gives the same count within 0.5%.
set -uo pipefail
cd "$(dirname "$0")/../.."

counts=tests/instructions/counts.txt
limit=10
scratch=$TARGET/instructions
rm -rf "$scratch" && mkdir -p "$scratch"

skip() { # reason
    echo "SKIPPED instructions: $1"
    echo "instructions: $1" >> "${LSMKV_SKIPS:-/dev/null}"
    echo "0 passed, 0 failed, 1 skipped"
    exit 0
}
command -v valgrind >/dev/null || skip "there is no valgrind"
[ "$(uname -m)" = x86_64 ] || skip "the counts are those of x86_64"

# Programs look for the library under its SONAME.
cp "$SHARED" "$scratch/liblsmkv.so.0" &&
    "${CC:-cc}" -std=gnu99 -Wall -Wextra -O2 -Iinclude tests/instructions/workload.c \
        "$scratch/liblsmkv.so.0" -o "$scratch/workload" || exit 1
export LD_LIBRARY_PATH=$scratch

# Prints the instructions of one case per call. Only the function `measure` is counted, and only on
# the thread that runs it.
count() { # case, repetitions
    local total
    {
        "$scratch/workload" prepare "$1" "$scratch/store-$1" &&
            valgrind --tool=callgrind --toggle-collect=measure --callgrind-out-file=/dev/null \
                "$scratch/workload" measure "$1" "$scratch/store-$1"
    } > "$scratch/log-$1" 2>&1 || return 1
    total=$(sed -n 's/.*Collected : \([0-9]*\).*/\1/p' "$scratch/log-$1")
    [ -n "$total" ] && echo $((total / $2))
}

passed=0 failed=0
printf '%-28s %12s %12s %8s\n' "instructions per call" committed now change
while read -r name repetitions; do
    if ! now=$(count "$name" "$repetitions"); then
        echo "FAILED $name:"
        cat "$scratch/log-$name"
        failed=$((failed + 1))
        continue
    fi
    echo "$name $now" >> "$scratch/counts"
    committed=$(awk -v name="$name" '$1 == name { print $2 }' "$counts" 2>/dev/null)
    if [ -z "$committed" ]; then
        printf '%-28s %12s %12d\n' "$name" none "$now"
        failed=$((failed + 1))
        continue
    fi
    change=$(awk -v a="$committed" -v b="$now" 'BEGIN { printf "%+.1f%%", (b - a) * 100 / a }')
    verdict=
    if [ "$now" -gt $((committed + committed * limit / 100)) ]; then
        verdict=" FAILED: over +$limit%"
        failed=$((failed + 1))
    else
        passed=$((passed + 1))
    fi
    printf '%-28s %12d %12d %8s%s\n' "$name" "$committed" "$now" "$change" "$verdict"
done < <("$scratch/workload" list)

if [ "${1:-}" = accept ]; then
    { grep '^#' "$counts"; cat "$scratch/counts"; } > "$scratch/accepted" &&
        cp "$scratch/accepted" "$counts" && echo "accepted: commit $counts"
    exit
fi
if [ "$failed" -gt 0 ]; then
    echo "Calls need more instructions than $counts allows. Find out why; if it must be so, run"
    echo "\`make instructions-accept\`, commit the file and give the reason in the commit message."
fi
echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ]
