#!/bin/sh
# Scripts, messages and waits beside redis-server: see bench/messages/messages.c. Each figure is the best
# of three runs, and each server's the better of two places: on the processor of its client and on another.
# Usage: bench/messages.sh PROGRAM MESSAGES
set -eu
program=$1 client=$2
dir=$(mktemp -d)
trap 'kill $servers 2>/dev/null; wait; rm -rf "$dir"' EXIT
ulimit -n 4096
servers=
redis-server --port 0 --unixsocket "$dir/redis" --save '' --dir "$dir" >"$dir/redis.log" &
redis=$! servers=$!
"$program" serve "$dir/store" --unixsocket "$dir/lsmkv" --port 0 2>"$dir/lsmkv.log" &
lsmkv=$! servers="$servers $!"
while ! [ -S "$dir/redis" ] || ! [ -S "$dir/lsmkv" ]; do sleep 0.1; done

# The largest of three numbers that a command prints.
best() {
    for _ in 1 2 3; do "$@"; done | sort -n | tail -1
}

# The best of a server on processor 0, its client on the same and on processor 1.
placed() {
    taskset -a -c -p 0 "$1" >/dev/null
    for processor in 0 1; do
        best taskset -c "$processor" "$client" "$2" "$dir/$3"
    done | sort -n | tail -1
}

in_process=$(best taskset -c 1 "$client" script)
script_redis=$(placed $redis script-of redis)
script_lsmkv=$(placed $lsmkv script-of lsmkv)
publish_redis=$(placed $redis publish redis)
publish_lsmkv=$(placed $lsmkv publish lsmkv)
wake=$("$client" wake)
ratio() {
    awk "BEGIN { printf \"%.2f\", $1 / $2 }"
}
echo "| | lsmkv | redis-server | ratio |"
echo "|---|---|---|---|"
echo "| EVALSHA of two commands a second, lsmkv in process | $in_process | $script_redis | $(ratio "$in_process" "$script_redis") |"
echo "| over a Unix socket | $script_lsmkv | $script_redis | $(ratio "$script_lsmkv" "$script_redis") |"
echo "| messages a second to 1,000 subscribers | $publish_lsmkv | $publish_redis | $(ratio "$publish_lsmkv" "$publish_redis") |"
echo "| from a push to the return of a pop that waits, us: median, 99% | $wake | | |"
