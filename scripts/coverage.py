#!/usr/bin/env python3
"""Lines of src/ that the tests run, by directory, from a report in lcov's format.

Lines of tests are left out: files and folders of tests, and everything from `#[cfg(test)]` before a
module to the end of a file. With a number as the second argument, a total below it is a failure.
`--missing DIR` also lists the lines of a directory that did not run.
"""

import collections
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TEST_FILE = re.compile(r"(^|/)(tests|testing|crash_tests|models)(\.rs$|/)")


def first_line_of_tests(path):
    """The number of the line from which on a file has only tests."""
    with open(path, encoding="utf-8") as file:
        lines = file.read().split("\n")
    for number, line in enumerate(lines, 1):
        if line == "#[cfg(test)]" and re.match(r"(pub(\(.*\))? )?mod \w+ \{", lines[number]):
            return number
    return len(lines) + 1


def read(report):
    """Yields the path below src/, and the runs of each line that is no test."""
    name, lines = None, {}
    for line in open(report, encoding="utf-8"):
        line = line.rstrip("\n")
        if line.startswith("SF:"):
            name, lines = line[3:], {}
        elif line.startswith("DA:"):
            number, count = line[3:].split(",")[:2]
            lines[int(number)] = int(count)
        elif line == "end_of_record":
            below = name.rpartition("/src/")[2] if "/src/" in name else None
            path = os.path.join(ROOT, "src", below) if below else None
            if path and os.path.exists(path) and name.endswith("src/" + below):
                if not re.search(r"/(cli|bench|codegen)/src/", name) and not TEST_FILE.search(below):
                    end = first_line_of_tests(path)
                    yield below, {n: count for n, count in lines.items() if n < end}


def main():
    arguments = sys.argv[1:]
    missing = None
    if "--missing" in arguments:
        at = arguments.index("--missing")
        missing = arguments[at + 1]
        del arguments[at : at + 2]
    ran, all_lines = collections.Counter(), collections.Counter()
    for path, lines in sorted(read(arguments[0])):
        directory = path.split("/")[0] if "/" in path else "."
        ran[directory] += sum(count > 0 for count in lines.values())
        all_lines[directory] += len(lines)
        if missing is not None and path.startswith(missing):
            print(path, *sorted(n for n, count in lines.items() if count == 0))
    print("| directory | lines | run | |\n|---|---|---|---|")
    for directory in sorted(all_lines):
        share = 100 * ran[directory] / all_lines[directory]
        print(f"| `src/{directory}` | {all_lines[directory]} | {ran[directory]} | {share:.1f}% |")
    total = 100 * sum(ran.values()) / sum(all_lines.values())
    print(f"| all | {sum(all_lines.values())} | {sum(ran.values())} | {total:.1f}% |")
    if len(arguments) > 1 and total < float(arguments[1]):
        sys.exit(f"less than {arguments[1]}% of the lines ran")


main()
