#!/usr/bin/env python3
"""Writes the table of commands in README.md from bench/results/commands.json.

`make figures` runs it after a measurement, and CI runs it to find figures that differ from the file.
"""

import json
import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BEGIN = "<!-- figures of commands.json: written by `make figures` -->\n"
END = "<!-- end of figures -->\n"

# Columns: title and name in the file. Rows: title and the rows of the file that they show.
PEERS = [
    ("lsmkv", "lsmkv"),
    ("Redis, 16 at once", "redis-pipelined"),
    ("Redis, one at a time", "redis"),
    ("on RocksDB", "rocksdb-types"),
]
ROWS = [
    ("SET / GET", ["set", "get"]),
    ("INCR", ["incr"]),
    ("HSET of a new field / HGET", ["hset-new", "hget-big"]),
    ("HGET of a small hash / HGETALL of 10 fields", ["hget-small", "hgetall10"]),
    ("LPUSH / LPOP", ["lpush", "lpop"]),
    ("LRANGE of 100", ["lrange100"]),
    ("SADD / SISMEMBER", ["sadd", "sismember"]),
    ("SPOP", ["spop"]),
    ("ZADD / ZSCORE", ["zadd-new", "zscore"]),
    ("ZRANGE 0 9 / ZPOPMIN", ["zrange10", "zpopmin"]),
]


def figure(rate):
    """Thousands per second, three digits."""
    if rate is None:
        return "-"
    thousands = rate / 1000
    return "%.0f" % thousands if thousands >= 10 else "%.1f" % thousands


def table(results):
    rates = {row["row"]: row["rates"] for row in results["rows"]}
    lines = ["| thousand per second | " + " | ".join(title for title, _ in PEERS) + " |"]
    lines.append("|---" * (len(PEERS) + 1) + "|")
    for title, names in ROWS:
        cells = []
        for _, peer in PEERS:
            medians = [rates.get(name, {}).get(peer, {}).get("median") for name in names]
            cells.append(" / ".join(figure(median) for median in medians))
        lines.append("| " + " | ".join([title] + cells) + " |")
    return "\n".join(lines) + "\n"


def main():
    readme = os.path.join(ROOT, "README.md")
    with open(os.path.join(ROOT, "bench", "results", "commands.json")) as file:
        results = json.load(file)
    with open(readme) as file:
        text = file.read()
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    written = before + BEGIN + table(results) + END + after
    if written == text:
        print("README.md has the figures of bench/results/commands.json")
        return 0
    with open(readme, "w") as file:
        file.write(written)
    print("README.md now has the figures of bench/results/commands.json")
    return 0


if __name__ == "__main__":
    sys.exit(main())
