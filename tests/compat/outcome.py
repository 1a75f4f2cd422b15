"""Runs one scenario in a process of its own, and tells why it failed in one line."""

import os
import re
import signal
import subprocess
import tempfile

OK = "ok"
# Lines in which a server refused something: the cause behind "nothing came".
REFUSALS = [
    re.compile(r"(unknown (?:sub)?command ['\"`][\w| ]+['\"`])", re.IGNORECASE),
    re.compile(r"((?:ERR|NOPROTO|NOSCRIPT|WRONGTYPE) [^\n]*)"),
]
# What differs from run to run.
CHANGING = [
    (re.compile(r"\b127\.0\.0\.1:\d+"), "the server"),
    (re.compile(r"0x[0-9a-f]+"), "0x"),
    (re.compile(r"\b[0-9a-f]{8}-[0-9a-f-]{27}\b"), "ID"),
    (re.compile(r"[\w/.-]*/lsmkv-compat-\w+"), "DIR"),
    (re.compile(r",? with args beginning with:.*"), ""),
]


def one_line(text):
    for pattern, instead in CHANGING:
        text = pattern.sub(instead, text)
    text = " ".join(text.replace("|", "/").split())
    return text if len(text) <= 160 else text[:157] + "..."


def reason(output, otherwise):
    """The line FAILED of a scenario, and what a server refused if that says more."""
    failed = re.findall(r"(?m)^FAILED (.*)$", output)
    told = failed[-1] if failed else otherwise
    for pattern in REFUSALS:
        if pattern.search(told):
            return one_line(told)
        found = pattern.search(output)
        if found:
            return one_line("%s (%s)" % (told, found.group(1)))
    return one_line(told)


def run(command, limit, variables):
    """Returns OK or the reason, and the whole output."""
    with tempfile.TemporaryFile("w+", errors="replace") as log, tempfile.TemporaryDirectory() as scratch:
        process = subprocess.Popen(
            command,
            stdout=log,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            cwd=scratch,
            env={**os.environ, **variables},
            start_new_session=True,
        )
        otherwise = None
        try:
            process.wait(limit)
        except subprocess.TimeoutExpired:
            otherwise = "no end after %d seconds" % limit
        # Also what the scenario started and left behind.
        end_group(process.pid)
        status = process.wait()
        log.seek(0)
        output = log.read()
    if otherwise is None and status == 0:
        return OK, output
    return reason(output, otherwise or "it ended with status %d" % status), output


def end_group(leader):
    try:
        os.killpg(leader, signal.SIGKILL)
    except ProcessLookupError:
        pass
