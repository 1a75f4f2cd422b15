"""Servers for one scenario each: a redis-server or an `lsmkv serve`, on a free port and an empty store."""

import contextlib
import os
import socket
import subprocess
import tempfile
import time


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def redis_command(program, port, directory):
    return [program, "--port", str(port), "--save", "", "--dir", directory]


def lsmkv_command(program, port, directory):
    return [program, "serve", os.path.join(directory, "store"), "--port", str(port)]


@contextlib.contextmanager
def running(command_of, program):
    """Yields the address of a server that is ended afterwards."""
    with tempfile.TemporaryDirectory(prefix="lsmkv-compat-") as directory:
        port = free_port()
        with open(os.path.join(directory, "log"), "w+") as log:
            command = command_of(program, port, directory)
            server = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
            try:
                wait(server, port, log)
                yield "redis://127.0.0.1:%d/0" % port
                if server.poll() is not None:
                    log.seek(0)
                    raise RuntimeError("the server ended: %s" % log.read().strip()[-300:])
            finally:
                server.kill()
                server.wait()


def wait(server, port, log):
    """Waits until the server answers."""
    end = time.monotonic() + 30
    while True:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1) as link:
            link.sendall(b"PING\r\n")
            if link.recv(7) == b"+PONG\r\n":
                return
        if server.poll() is not None or time.monotonic() > end:
            log.seek(0)
            raise RuntimeError("the server does not answer: %s" % log.read().strip()[-300:])
        time.sleep(0.02)
