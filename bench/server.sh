#!/usr/bin/env bash
# Measures `lsmkv serve` and a real redis-server, whose append-only file is flushed every second, with
# redis-benchmark in one run: a table of requests per second and ratios.
#
#   bench/server.sh PROGRAM [REQUESTS] [REPETITIONS]
#
# Repetitions take turns, and the best one counts: other load on the machine only makes figures worse.
set -euo pipefail
program=${1:?the lsmkv program}
requests=${2:-200000}
repetitions=${3:-3}
tests=set,get,incr,lpush,rpush,lpop,rpop,sadd,hset,spop,zadd,zpopmin,lrange_100,mset

scratch=$(mktemp -d)
ours=$scratch/ours.sock theirs=$scratch/theirs.sock
cleanup() {
    kill "${pids[@]}" 2>/dev/null || true
    wait 2>/dev/null || true
    rm -rf "$scratch"
}
pids=()
trap cleanup EXIT

"$program" serve "$scratch/ours" --port 0 --unixsocket "$ours" 2>/dev/null &
pids+=($!)
mkdir "$scratch/theirs"
redis-server --port 0 --unixsocket "$theirs" --dir "$scratch/theirs" --save '' \
    --appendonly yes --appendfsync everysec >/dev/null &
pids+=($!)
for socket in "$ours" "$theirs"; do
    until redis-cli -s "$socket" ping >/dev/null 2>&1; do sleep 0.1; done
done

# Writes `NAME RATE` for each test.
measure() { # socket, pipeline
    redis-cli -s "$1" flushall >/dev/null
    redis-benchmark -s "$1" -t "$tests" -n "$requests" -r 100000 -P "$2" --csv 2>/dev/null |
        awk -F'","' 'NR > 1 { sub(/^"/, "", $1); sub(/ \(.*/, "", $1); print $1 "\t" $2 }'
}

printf '%-14s %4s %12s %12s %7s\n' test -P lsmkv redis ratio
for pipeline in 1 16; do
    : > "$scratch/rates"
    for ((n = 0; n < repetitions; n++)); do
        measure "$ours" "$pipeline" | sed 's/^/lsmkv\t/' >> "$scratch/rates"
        measure "$theirs" "$pipeline" | sed 's/^/redis\t/' >> "$scratch/rates"
    done
    awk -F'\t' -v pipeline="$pipeline" '
        !($2 in seen) { seen[$2] = 1; order[++count] = $2 }
        $3 > best[$1, $2] { best[$1, $2] = $3 }
        END {
            for (i = 1; i <= count; i++) {
                name = order[i]; a = best["lsmkv", name]; b = best["redis", name]
                printf "%-14s %4d %12.0f %12.0f %6.2fx\n", name, pipeline, a, b, b ? a / b : 0
            }
        }' "$scratch/rates"
done
