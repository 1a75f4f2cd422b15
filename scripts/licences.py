#!/usr/bin/env python3
"""Checks licences, sources and bans of all dependencies against deny.toml, without cargo-deny.

Bans are duplicate versions, requirements of any version, and crates that must not be used. cargo-deny
takes minutes to compile; this takes less than a second. `make deny` runs cargo-deny itself, which also
knows advisories.
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


def fits(version, wanted):
    """Whether a version is one of `wanted`, which may leave out its last numbers."""
    return not wanted or (version + ".").startswith(wanted + ".")


def licences_and_sources(packages, rules):
    exceptions = {entry["crate"]: set(entry["allow"]) for entry in rules["exceptions"]}
    for package in packages:
        licences = set(rules["allow"]) | exceptions.get(package["name"], set())
        if not allowed(package["license"] or "none", licences):
            yield f"{package['name']}: licence {package['license']} is not allowed"
        # Packages of the workspace have no source.
        if not (package["source"] or "registry+").startswith("registry+"):
            yield f"{package['name']}: comes from {package['source']}"
    registries = {package["source"] for package in packages if package["source"]}
    if len(registries) > 1:
        yield f"dependencies come from {len(registries)} places instead of one registry"


def duplicates(packages, skip):
    """Crates of which there are several versions beside those of `skip`, and needless skips."""
    versions = {}
    for package in packages:
        versions.setdefault(package["name"], set()).add(package["version"])
    for entry in skip:
        name, _, wanted = entry["crate"].partition("@")
        found = {version for version in versions.get(name, set()) if fits(version, wanted)}
        if not found or found == versions[name]:
            yield f"{entry['crate']}: there is no such version beside another one, skip it no longer"
        else:
            versions[name] -= found
    for name, found in sorted(versions.items()):
        if len(found) > 1:
            yield f"{name}: there are several versions, {', '.join(sorted(found))}"


def wildcards(packages, paths_are_allowed):
    """Requirements of any version; packages that are not published may name others by path only."""
    for package in packages:
        for dependency in package["dependencies"]:
            by_path = "path" in dependency and package["publish"] == []
            if dependency["req"] == "*" and not (paths_are_allowed and by_path):
                yield f"{package['name']}: takes any version of {dependency['name']}"


def banned(packages, deny):
    for entry in deny:
        name, _, wanted = entry["crate"].partition("@")
        for package in packages:
            if package["name"] == name and fits(package["version"], wanted):
                yield f"{name} {package['version']} is banned: {entry['reason']}"


def bans(packages, rules):
    """What is wrong; rules that only warn print their findings."""
    judged = [
        (rules["multiple-versions"], duplicates(packages, rules["skip"])),
        (rules["wildcards"], wildcards(packages, rules["allow-wildcard-paths"])),
        ("deny", banned(packages, rules["deny"])),
    ]
    for level, found in judged:
        for text in found:
            if level == "deny":
                yield text
            elif level == "warn":
                print(f"warning: {text}")


def package(name, version, requirement="^1", **others):
    """A package with one dependency, for the self-test."""
    dependency = {"name": "other", "req": requirement, **others.pop("dependency", {})}
    return {"name": name, "version": version, "publish": None, "dependencies": [dependency], **others}


def self_test_of_bans():
    two = [package("a", "0.1.2"), package("a", "0.10.0")]
    assert len(list(duplicates(two, []))) == 1
    assert not list(duplicates(two, [{"crate": "a@0.1"}]))
    assert len(list(duplicates(two, [{"crate": "a@0.2"}]))) == 2, "needless, and not skipped"
    assert len(list(duplicates(two[:1], [{"crate": "a@0.1"}]))) == 1, "needless"
    assert len(list(wildcards([package("a", "1.0.0", "*")], True))) == 1
    by_path = {"dependency": {"path": "/b"}}
    assert len(list(wildcards([package("a", "1.0.0", "*", **by_path)], True))) == 1, "published"
    by_path["publish"] = []
    assert not list(wildcards([package("a", "1.0.0", "*", **by_path)], True))
    assert len(list(banned(two, [{"crate": "a", "reason": "bad"}]))) == 2
    assert len(list(banned(two, [{"crate": "a@0.1", "reason": "bad"}]))) == 1
    assert not list(banned(two, [{"crate": "b", "reason": "bad"}]))


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
    self_test_of_bans()
    with open(os.path.join(ROOT, "deny.toml"), "rb") as file:
        rules = tomllib.load(file)
    command = [os.environ.get("CARGO", "cargo"), "metadata", "--format-version=1", "--locked"]
    packages = json.loads(subprocess.check_output(command, cwd=ROOT))["packages"]
    wrong = [*licences_and_sources(packages, rules["licenses"]), *bans(packages, rules["bans"])]
    print("\n".join(wrong) or f"{len(packages)} packages: licences, sources and bans are as deny.toml says")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
