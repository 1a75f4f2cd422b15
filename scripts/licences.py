#!/usr/bin/env python3
"""Checks the licences and sources of all dependencies against deny.toml, without cargo-deny.

cargo-deny takes minutes to compile; this takes a second. `make deny` runs cargo-deny itself, which
also knows advisories.
"""

import json
import os
import re
import subprocess
import sys
import tomllib

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def allowed(expression, licences):
    """Whether an SPDX expression can be met with these licences; `/` is an old form of OR."""
    tokens = re.findall(r"\(|\)|[^\s()]+", expression.replace("/", " OR "))
    joined = []
    for token in tokens:
        if joined and (token == "WITH" or joined[-1].endswith(" WITH")):
            joined[-1] += " " + token
        else:
            joined.append(token)

    def alternatives(at):
        result, at = all_of(at)
        while at < len(joined) and joined[at] == "OR":
            other, at = all_of(at + 1)
            result = result or other
        return result, at

    def all_of(at):
        result, at = one(at)
        while at < len(joined) and joined[at] == "AND":
            other, at = one(at + 1)
            result = result and other
        return result, at

    def one(at):
        if joined[at] == "(":
            result, at = alternatives(at + 1)
            return result, at + 1
        return joined[at] in licences, at + 1

    result, at = alternatives(0)
    return result and at == len(joined)


def self_test():
    licences = {"MIT", "Apache-2.0 WITH LLVM-exception", "Unicode-3.0"}
    for expression, expected in [
        ("MIT", True),
        ("GPL-3.0", False),
        ("Apache-2.0/MIT", True),
        ("GPL-3.0 OR MIT", True),
        ("(MIT OR GPL-3.0) AND Unicode-3.0", True),
        ("MIT AND GPL-3.0", False),
        ("Apache-2.0 WITH LLVM-exception", True),
        ("Apache-2.0", False),
    ]:
        assert allowed(expression, licences) == expected, expression


def main():
    self_test()
    with open(os.path.join(ROOT, "deny.toml"), "rb") as file:
        rules = tomllib.load(file)["licenses"]
    exceptions = {entry["crate"]: set(entry["allow"]) for entry in rules["exceptions"]}
    command = [os.environ.get("CARGO", "cargo"), "metadata", "--format-version=1", "--locked"]
    packages = json.loads(subprocess.check_output(command, cwd=ROOT))["packages"]
    wrong = []
    for package in packages:
        licences = set(rules["allow"]) | exceptions.get(package["name"], set())
        if not allowed(package["license"] or "none", licences):
            wrong.append(f"{package['name']}: licence {package['license']} is not allowed")
        # Packages of the workspace have no source.
        if not (package["source"] or "registry+").startswith("registry+"):
            wrong.append(f"{package['name']}: comes from {package['source']}")
    registries = {package["source"] for package in packages if package["source"]}
    if len(registries) > 1:
        wrong.append(f"dependencies come from {len(registries)} places instead of one registry")
    print("\n".join(wrong) or f"{len(packages)} packages: licences and sources are as deny.toml says")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
