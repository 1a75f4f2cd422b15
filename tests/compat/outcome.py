"""Runs one scenario in a process of its own, and tells why it failed in one line."""

import os
import re
import signal
import subprocess
import tempfile

OK = "ok"
# What a server refused: the cause behind "nothing came".
UNKNOWN = re.compile(r"unknown (?:sub)?command ['\"`]([\w| ]+)['\"`]", re.IGNORECASE)
REFUSAL = re.compile(r"(?:ERR|NOPROTO|NOSCRIPT|WRONGTYPE) [^\n]*")
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
    """The line FAILED of a scenario, or commands that the server does not know."""
    failed = re.findall(r"(?m)^FAILED (.*)$", output)
    told = failed[-1] if failed else otherwise
    unknown = sorted({name.upper() for name in UNKNOWN.findall(output)})
    if unknown:
        return "unknown command: " + ", ".join(unknown)
    refused = REFUSAL.search(output)
    if refused and not REFUSAL.search(told):
        told += " (%s)" % refused.group()
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
