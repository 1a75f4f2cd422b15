"""The environments in which programs are installed, with pinned versions, below a cache directory.

Packages come from the registries that pip, npm, apt and cargo of this machine are configured for.
What is installed stays until its pins change.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))


class Unavailable(Exception):
    """An environment cannot be installed on this machine."""


def run(command, **options):
    """Runs a command of an installation; raises Unavailable with what it said last."""
    try:
        done = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=900, **options
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unavailable(str(error)) from error
    if done.returncode != 0:
        lines = [line for line in done.stdout.splitlines() if line.strip()] or ["no output"]
        raise Unavailable("%s: %s" % (os.path.basename(command[0]), lines[-1].strip()))
    return done.stdout


def read(*path):
    with open(os.path.join(HERE, *path)) as file:
        return file.read()


def stamped(directory, contents, install):
    """Calls `install` unless it succeeded before with these contents."""
    stamp = os.path.join(directory, "stamp-" + hashlib.sha256(contents.encode()).hexdigest()[:16])
    if not os.path.exists(stamp):
        install()
        open(stamp, "w").close()


class Python:
    """A virtual environment: `python/NAME.txt` pins every package, also the indirect ones."""

    def __init__(self, cache, name):
        self.directory = os.path.join(cache, "python-" + name)
        self.pins = os.path.join(HERE, "python", name + ".txt")

    def install(self, rows):
        packages = sorted({row.package for row in rows} | {p for row in rows for p in ALSO.get(row.package, [])})
        python = os.path.join(self.directory, "bin", "python")

        def install():
            if not os.path.exists(python):
                run([sys.executable, "-m", "venv", self.directory])
            pip = [python, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
            run([*pip, "-c", self.pins, *packages])

        stamped(self.directory, read(self.pins) + " ".join(packages), install)

    def version(self, package):
        return re.search(r"(?m)^%s==(\S+)$" % re.escape(package), read(self.pins)).group(1)

    def command(self, row):
        return [os.path.join(self.directory, "bin", "python"), os.path.join(HERE, row.file), row.function]

    def variables(self):
        return {"PYTHONDONTWRITEBYTECODE": "1"}


# What a program's scenario needs beside the program: clients that its README installs with it.
ALSO = {
    "gunicorn": ["redis"],
    "celery": ["kombu[redis]"],
    "kombu": ["kombu[redis]"],
    "huey": ["redis"],
    "dramatiq": ["redis"],
    "Django": ["redis"],
    "Flask-Session": ["redis", "msgspec"],
    "limits": ["redis"],
    "Flask-Limiter": ["redis"],
    "saq": ["redis"],
    "dogpile.cache": ["redis"],
    "python-socketio": ["redis", "aiohttp"],
    "walrus": ["redis"],
}


class Node:
    """The packages of node/package-lock.json, which names versions and checksums, no addresses."""

    def __init__(self, cache):
        self.directory = os.path.join(cache, "node")
        self.modules = os.path.join(self.directory, "node_modules")

    def install(self, rows):
        def install():
            os.makedirs(self.directory, exist_ok=True)
            for name in ("package.json", "package-lock.json"):
                shutil.copy(os.path.join(HERE, "node", name), self.directory)
            # Optional packages are compiled per platform, and a registry may lack some, which `npm ci`
            # refuses. The lock file holds for `npm install` too.
            options = ["--omit=optional", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
            run(["npm", "install", *options], cwd=self.directory)

        if shutil.which("node") is None or shutil.which("npm") is None:
            raise Unavailable("there is no node or no npm; scripts/setup.sh installs them")
        stamped(self.directory, read("node", "package-lock.json"), install)

    def version(self, package):
        lock = json.loads(read("node", "package-lock.json"))
        return lock["packages"]["node_modules/" + package]["version"]

    def command(self, row):
        return ["node", os.path.join(HERE, row.file), row.function]

    def variables(self):
        return {"NODE_PATH": self.modules}


class Ruby:
    """Debian's packages, installed with apt where that is possible."""

    def __init__(self, cache):
        pass

    def install(self, rows):
        if shutil.which("sidekiq"):
            return
        if os.geteuid() != 0 or shutil.which("apt-get") is None:
            raise Unavailable("there is no sidekiq: please install ruby-sidekiq")
        quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        run(["apt-get", "update", "-qq"], env=quiet)
        run(["apt-get", "install", "-y", "-qq", "--no-install-recommends", "ruby-sidekiq"], env=quiet)

    def version(self, package):
        return run(["dpkg-query", "-W", "-f", "${Version}", package])

    def command(self, row):
        return ["ruby", os.path.join(HERE, row.file), row.function]

    def variables(self):
        return {}


class Rust:
    """A program of its own workspace, with its own lock file."""

    def __init__(self, cache):
        self.target = os.path.join(cache, "rust")

    def install(self, rows):
        manifest = os.path.join(HERE, "rust", "Cargo.toml")
        run(
            ["cargo", "build", "-q", "--locked", "--manifest-path", manifest],
            env={**os.environ, "CARGO_TARGET_DIR": self.target},
        )

    def version(self, package):
        lock = read("rust", "Cargo.lock")
        return re.search(r'name = "%s"\nversion = "(.*)"' % re.escape(package), lock).group(1)

    def command(self, row):
        return [os.path.join(self.target, "debug", "lsmkv-compat"), row.function]

    def variables(self):
        return {}


def environments(cache):
    return {
        "current": Python(cache, "current"),
        "older": Python(cache, "older"),
        "node": Node(cache),
        "ruby": Ruby(cache),
        "rust": Rust(cache),
    }
