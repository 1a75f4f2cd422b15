#!/usr/bin/env python3
"""Uses real programs on a server and in process, and writes what works.

    run.py --cache DIR --lsmkv PROGRAM --library liblsmkv.so    the whole matrix; `make compat`
    run.py ... --write               and writes docs/compatibility.json and docs/COMPATIBILITY.md
    run.py ... --short               the rows of CI; fails if one that the page calls working fails
    run.py ... --only TEXT           rows whose name contains TEXT, with their whole output
    run.py --cache DIR --short --install    installs the programs, nothing else

`--redis` names a redis-server, on which each scenario must pass before it counts; the short form
leaves that out.
"""

import argparse
import concurrent.futures
import json
import os
import subprocess
import sys
import tempfile

import outcome
import page
import servers
from environments import Unavailable, environments
from rows import ROWS

ROOT = page.ROOT


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--cache", required=True, type=os.path.abspath)
    parser.add_argument("--lsmkv", type=os.path.abspath)
    parser.add_argument("--library", type=os.path.abspath)
    parser.add_argument("--redis", default="redis-server")
    parser.add_argument("--places", default="redis,server,in process")
    parser.add_argument("--jobs", type=int, default=2)
    for name in ("short", "install", "write"):
        parser.add_argument("--" + name, action="store_true")
    parser.add_argument("--only", default="")
    return parser.parse_args()


class Matrix:
    """The rows that are to run, and how."""

    def __init__(self, given):
        self.given = given
        self.rows = [row for row in ROWS if (row.short or not given.short) and given.only in row.name]
        self.environments = environments(given.cache)
        # Environments that could not be installed, with the reason.
        self.missing = {}

    def install(self):
        for name, environment in self.environments.items():
            rows = [row for row in self.rows if row.environment == name]
            if not rows:
                continue
            try:
                environment.install(rows)
            except Unavailable as why:
                self.missing[name] = outcome.one_line(str(why))

    def in_place(self, row, place):
        """Runs a row in one place; returns its outcome and output, or None where it does not apply."""
        environment = self.environments[row.environment]
        command, variables = environment.command(row), environment.variables()
        if place == "in process":
            if not row.in_process:
                return None, ""
            bindings = os.path.join(ROOT, "bindings", "python")
            variables = {**variables, "PYTHONPATH": bindings, "LSMKV_LIBRARY": self.given.library}
            with tempfile.TemporaryDirectory(prefix="lsmkv-compat-") as directory:
                return outcome.run([*command, os.path.join(directory, "store")], row.limit, variables)
        if place == "redis":
            server = servers.running(servers.redis_command, self.given.redis)
        else:
            server = servers.running(servers.lsmkv_command, self.given.lsmkv)
        try:
            with server as url:
                return outcome.run([*command, url], row.limit, variables)
        except RuntimeError as error:
            return outcome.one_line(str(error)), str(error)

    def run(self, row):
        """Runs a row everywhere; returns what the results say of it."""
        found = {
            "program": row.program,
            "version": self.environments[row.environment].version(row.package),
            "scenario": row.shows,
            "short": row.short,
            "needs": row.needs,
        }
        told = []
        for place in self.given.places.split(","):
            found[place], output = self.in_place(row, place)
            if found[place] is not None:
                told.append("%-10s %s: %s" % (place, row.name, found[place]))
                if self.given.only and found[place] != outcome.OK:
                    told.append(output)
        if told:
            print("\n".join(told), flush=True)
        return found

    def run_all(self):
        rows = [row for row in self.rows if row.environment not in self.missing]
        with concurrent.futures.ThreadPoolExecutor(self.given.jobs) as pool:
            return list(pool.map(self.run, rows))


def known_to_work(place):
    """Names of the rows that the committed results call working."""
    with open(page.RESULTS) as file:
        rows = json.load(file)["rows"]
    return {"%(program)s: %(scenario)s" % row for row in rows if row.get(place) == outcome.OK}


def short(matrix, found):
    """Compares with the committed results; prints the counts as scripts/test.sh reads them."""
    passed = failed = 0
    for place in ("server", "in process"):
        known = known_to_work(place)
        for row in found:
            name = "%(program)s: %(scenario)s" % row
            if row[place] == outcome.OK:
                passed += 1
                if name not in known:
                    print("works now, %s, though the page says no: %s; run `make compat`" % (place, name))
            elif row[place] is not None and name in known:
                failed += 1
                print("FAILED %s, %s: %s" % (name, place, row[place]))
    for name, why in matrix.missing.items():
        print("SKIPPED compat::%s: %s" % (name, why))
        if "LSMKV_SKIPS" in os.environ:
            with open(os.environ["LSMKV_SKIPS"], "a") as skips:
                skips.write("compat::%s: %s\n" % (name, why))
    print("%d passed, %d failed, %d skipped" % (passed, failed, len(matrix.missing)))
    return 1 if failed else 0


def redis_version(program):
    said = subprocess.run([program, "--version"], capture_output=True, text=True).stdout
    return said.split("v=")[1].split()[0]


def whole(matrix, found):
    """Writes the results if every scenario is known to be right."""
    for name, why in matrix.missing.items():
        print("cannot be installed: %s: %s" % (name, why))
    wrong = [row for row in found if row.get("redis") != outcome.OK]
    for row in wrong:
        print("not right, since Redis fails: %(program)s: %(scenario)s: %(redis)s" % row)
    for place in ("server", "in process"):
        outcomes = [row[place] for row in found if row.get(place) is not None]
        print("%s: %d of %d work" % (place, outcomes.count(outcome.OK), len(outcomes)))
    if wrong or matrix.missing:
        return 1
    if matrix.given.write:
        for row in found:
            del row["redis"]
        results = {"redis": redis_version(matrix.given.redis), "rows": found}
        with open(page.RESULTS, "w") as file:
            json.dump(results, file, indent=1)
            file.write("\n")
        return page.main()
    return 0


def main():
    given = arguments()
    if given.short:
        given.places = "server,in process"
    matrix = Matrix(given)
    matrix.install()
    if given.install:
        for name, why in matrix.missing.items():
            print("setup: could not install the programs of compat::%s: %s" % (name, why))
        return 0
    found = matrix.run_all()
    if given.short:
        return short(matrix, found)
    if given.only or given.places != "redis,server,in process":
        return 0
    return whole(matrix, found)


if __name__ == "__main__":
    sys.exit(main())
