#!/usr/bin/env python3
"""Writes docs/COMPATIBILITY.md from docs/compatibility.json, the results of the last whole run.

CI runs it to find a page that differs from the results.
"""

import json
import os
import sys

from rows import NO_POOL

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
RESULTS = os.path.join(ROOT, "docs", "compatibility.json")
PAGE = os.path.join(ROOT, "docs", "COMPATIBILITY.md")

HEAD = """# Compatibility

<!-- Written by tests/compat/page.py from compatibility.json, which `make compat` writes. -->

Programs written for Redis, as their registries have them and used as their READMEs say. Each row is a
scenario of [tests/compat](../tests/compat) that sees an effect: a task that ran, a lock that was
released, a limit that was enforced. Every scenario passes on Redis %(redis)s first.

- **server**: on `lsmkv serve`, with nothing changed but the address.
- **in process**: without a server, on a connection pool of
  [lsmkv's Python package](../bindings/python/README.md). `-` where no pool can be handed in, for the
  reasons [below](#why-not-in-process).

%(server)d of %(rows)d scenarios work on the server, %(local)d of %(poolable)d in process.
`make compat` repeats the run; CI repeats the rows marked \\* and fails if one of them stops working.

| program | version | scenario | server | in process | why not |
|---|---|---|---|---|---|
"""

WHY = """
## Why not in process

A program runs in process if it takes a client of redis-py, or a pool for one. These do not:

%s- Programs in JavaScript, Ruby and Rust: the pool is one of redis-py, so of Python alone.

They work on a server, which may be in a program of yours: `db.serve("unix:/run/app.sock")`, see
[SCALING.md](SCALING.md#a-program-that-serves-its-own-store).
"""


def cell(outcome):
    return "-" if outcome is None else "yes" if outcome == "ok" else "**no**"


def note(row):
    """The reasons, each once, and what Redis has for it."""
    failed = [row[place] for place in ("server", "in process") if row[place] not in (None, "ok")]
    reasons = list(dict.fromkeys(failed))
    if reasons and row["needs"]:
        reasons.append("needs " + row["needs"])
    return "; ".join(reasons)


def escaped(text):
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*").replace("_", "\\_")


def page(results):
    rows = results["rows"]
    poolable = [row for row in rows if row["in process"] is not None]
    text = HEAD % {
        "redis": results["redis"],
        "rows": len(rows),
        "server": sum(row["server"] == "ok" for row in rows),
        "local": sum(row["in process"] == "ok" for row in poolable),
        "poolable": len(poolable),
    }
    before = None
    for row in rows:
        again = row["program"] == before
        before = row["program"]
        cells = [
            "" if again else row["program"],
            "" if again else row["version"],
            row["scenario"] + (" \\*" if row["short"] else ""),
            cell(row["server"]),
            cell(row["in process"]),
            escaped(note(row)),
        ]
        text += "| " + " | ".join(cells) + " |\n"
    return text + WHY % "".join(reasons(rows))


def reasons(rows):
    """A line for each program that has a scenario without a pool, and why it has none."""
    apart = dict.fromkeys(row["program"] for row in rows if row["in process"] is None)
    return ["- %s: %s\n" % (program, NO_POOL[program]) for program in apart if program in NO_POOL]


def main():
    with open(RESULTS) as file:
        text = page(json.load(file))
    if os.path.exists(PAGE) and open(PAGE).read() == text:
        print("docs/COMPATIBILITY.md has the results of docs/compatibility.json")
        return 0
    with open(PAGE, "w") as file:
        file.write(text)
    print("docs/COMPATIBILITY.md now has the results of docs/compatibility.json")
    return 0


if __name__ == "__main__":
    sys.exit(main())
