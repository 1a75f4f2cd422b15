"""The actors of with_dramatiq.py, which its worker loads."""

import os

import dramatiq
from dramatiq.brokers.redis import RedisBroker
from dramatiq.results import Results
from dramatiq.results.backends import RedisBackend

PLACE = {"url": os.environ.get("COMPAT_URL")}


def declare(broker, backend):
    """Declares the actors on a broker."""
    broker.add_middleware(Results(backend=backend))
    dramatiq.set_broker(broker)

    @dramatiq.actor(store_results=True)
    def add(x, y):
        return x + y

    @dramatiq.actor(store_results=True, max_retries=3, min_backoff=50, max_backoff=100)
    def fails_once(key):
        if backend.client.incr(key) == 1:
            raise ValueError("again")
        return "done"

    return add, fails_once


if PLACE["url"]:
    broker = RedisBroker(**PLACE)
    add, fails_once = declare(broker, RedisBackend(**PLACE))
