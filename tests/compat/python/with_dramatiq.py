"""dramatiq: actors, results, delays, rate limits; in process with a worker of threads."""

import contextlib
import os
import time

import dramatiq
from dramatiq.brokers.redis import RedisBroker
from dramatiq.rate_limits import ConcurrentRateLimiter, WindowRateLimiter
from dramatiq.rate_limits.backends import RedisBackend as LimitBackend
from dramatiq.results.backends import RedisBackend

from scenario import client, equal, main, program, raises, worker


@contextlib.contextmanager
def running(place):
    """Yields the actors while a worker runs."""
    if not place.in_process:
        os.environ["COMPAT_URL"] = place.url
        import dramatiq_app

        command = [program("dramatiq"), "dramatiq_app", "-p", "1", "-t", "4"]
        with worker(*command, COMPAT_URL=place.url):
            yield dramatiq_app.add, dramatiq_app.fails_once
        return
    import dramatiq_app

    broker = RedisBroker(client=client(place))
    actors = dramatiq_app.declare(broker, RedisBackend(client=client(place)))
    threads = dramatiq.Worker(broker, worker_threads=4)
    threads.start()
    yield actors
    threads.stop()


def actor(place):
    """Actors run and their results come back; a failed one is tried again."""
    with running(place) as (add, fails_once):
        equal(add.send(1, 2).get_result(block=True, timeout=15_000), 3)
        messages = [add.send(n, n) for n in range(10)]
        found = [m.get_result(block=True, timeout=15_000) for m in messages]
        equal(found, [n + n for n in range(10)])
        equal(fails_once.send("tries").get_result(block=True, timeout=15_000), "done")


def delay(place):
    """A delayed message is handled at its time."""
    with running(place) as (add, _):
        equal(add.send(0, 0).get_result(block=True, timeout=15_000), 0)
        begun = time.monotonic()
        message = add.send_with_options(args=(1, 2), delay=1500)
        equal(message.get_result(block=True, timeout=15_000), 3)
        assert time.monotonic() - begun >= 1.4, "it ran too early"


def rate_limit(place):
    """A concurrent and a window limit are enforced."""
    backend = LimitBackend(client=client(place))
    mutex = ConcurrentRateLimiter(backend, "mutex", limit=1)
    with mutex.acquire():
        with raises(dramatiq.RateLimitExceeded):
            with mutex.acquire():
                pass
    with mutex.acquire():
        pass
    window = WindowRateLimiter(backend, "window", limit=2, window=30)
    for _ in range(2):
        with window.acquire():
            pass
    with raises(dramatiq.RateLimitExceeded):
        with window.acquire():
            pass


main(globals())
