#!/usr/bin/env bash
# Measures `lsmkv serve` and a real redis-server, whose append-only file is flushed every second, with
# redis-benchmark in one run: a table of requests per second and ratios.
#
#   bench/server.sh PROGRAM [REQUESTS] [REPETITIONS]
#   TLS=yes bench/server.sh ...    SET and GET alone, on TCP with TLS
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

# With TLS: the options of both servers, and how redis-benchmark reaches each.
secret=() to_ours=(-s "$ours") to_theirs=(-s "$theirs")
if [ "${TLS:-}" = yes ]; then
    tests=set,get
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 1 -subj /CN=localhost \
        -addext subjectAltName=DNS:localhost -keyout "$scratch/key" -out "$scratch/cert" 2>/dev/null
    secret=(--tls-cert-file "$scratch/cert" --tls-key-file "$scratch/key" --tls-ca-cert-file "$scratch/cert"
        --tls-auth-clients no)
    to=(-h localhost --tls --cacert "$scratch/cert" -p)
    to_ours=("${to[@]}" 16380) to_theirs=("${to[@]}" 16381)
fi
serves_tls() { [ "${TLS:-}" != yes ] || echo --tls-port "$1"; }

# shellcheck disable=SC2046 # two words or none
"$program" serve "$scratch/ours" --port 0 --unixsocket "$ours" $(serves_tls 16380) "${secret[@]}" 2>/dev/null &
pids+=($!)
mkdir "$scratch/theirs"
# shellcheck disable=SC2046
redis-server --port 0 --unixsocket "$theirs" --dir "$scratch/theirs" --save '' \
    --appendonly yes --appendfsync everysec $(serves_tls 16381) "${secret[@]}" >/dev/null &
pids+=($!)
for socket in "$ours" "$theirs"; do
    until redis-cli -s "$socket" ping >/dev/null 2>&1; do sleep 0.1; done
done

# Writes `NAME RATE` for each test.
measure() { # pipeline, how to reach the server
    local pipeline=$1
    shift
    redis-cli "$@" flushall >/dev/null
    redis-benchmark "$@" -t "$tests" -n "$requests" -r 100000 -P "$pipeline" --csv 2>/dev/null |
        awk -F'","' 'NR > 1 { sub(/^"/, "", $1); sub(/ \(.*/, "", $1); print $1 "\t" $2 }'
}

printf '%-14s %4s %12s %12s %7s\n' test -P lsmkv redis ratio
for pipeline in 1 16; do
    : > "$scratch/rates"
    for ((n = 0; n < repetitions; n++)); do
        measure "$pipeline" "${to_ours[@]}" | sed 's/^/lsmkv\t/' >> "$scratch/rates"
        measure "$pipeline" "${to_theirs[@]}" | sed 's/^/redis\t/' >> "$scratch/rates"
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
