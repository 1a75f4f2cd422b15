"""gunicorn: workers that share a store. One of them is killed, and the master is started again."""

import contextlib
import http.client
import os
import signal
import socket
import threading

from scenario import equal, main, program, wait_until, worker


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextlib.contextmanager
def running(port, **environment):
    """Runs gunicorn until the block ends."""
    here = os.path.dirname(os.path.abspath(__file__))
    paths = os.pathsep.join([here, *filter(None, [os.environ.get("PYTHONPATH")])])
    command = [program("gunicorn"), "-c", "python:gunicorn_app", "gunicorn_app:application"]
    with worker(*command, PYTHONPATH=paths, **environment):
        wait_until(lambda: request(port) is not None)
        yield
    # Workers may answer for a moment longer than their master lives.
    wait_until(lambda: not is_open(port))


def is_open(port):
    """Whether anybody listens on a port."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def request(port):
    """The number that a request got; None if its worker was gone, or lost the holder of the store."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    try:
        connection.request("GET", "/")
        answer = connection.getresponse()
        return int(answer.read()) if answer.status == 200 else None
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()


def requests(port, count):
    """Sends so many requests from four threads; returns the numbers that they got."""
    numbers = []

    def send():
        numbers.extend(request(port) for _ in range(count // 4))

    threads = [threading.Thread(target=send) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = [number for number in numbers if number is not None]
    equal(len(set(found)), len(found))
    return found


def living(client):
    """The workers that have answered and still run."""
    found = (int(number) for number in client.smembers("workers"))
    return [number for number in found if os.path.exists("/proc/%d" % number)]


def killed_and_restarted(place, **environment):
    port = free_port()
    os.environ["COMPAT_URL"] = place.directory if place.in_process else place.url
    os.environ["COMPAT_BIND"] = "127.0.0.1:%d" % port
    import gunicorn_app

    with running(port, **environment):
        client = gunicorn_app.connected()
        wait_until(lambda: requests(port, 8) and len(living(client)) == 3)
        before = max(requests(port, 200))
        for victim in living(client)[:2]:
            os.kill(victim, signal.SIGKILL)
        wait_until(lambda: requests(port, 8) and len(living(client)) == 3)
        after = requests(port, 200)
        equal(len(after), 200)
        assert min(after) > before, (min(after), before)
        client.connection_pool.disconnect()
    with running(port, **environment):
        again = requests(port, 100)
        equal(len(again), 100)
        assert min(again) > max(after), (min(again), max(after))


def workers(place):
    """Each worker opens the store itself."""
    killed_and_restarted(place)


def preloaded(place):
    """The master has the store open when it forks its workers."""
    killed_and_restarted(place, COMPAT_PRELOAD="1")


main(globals())
