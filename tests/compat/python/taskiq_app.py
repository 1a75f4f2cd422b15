"""The brokers of with_taskiq.py, which its workers load."""

import os

from taskiq_redis import ListQueueBroker, PubSubBroker, RedisAsyncResultBackend, RedisStreamBroker

KINDS = {"list": ListQueueBroker, "pubsub": PubSubBroker, "stream": RedisStreamBroker}

url = os.environ["COMPAT_URL"]
broker = KINDS[os.environ["COMPAT_BROKER"]](url).with_result_backend(RedisAsyncResultBackend(url))


@broker.task
async def add(x: int, y: int) -> int:
    return x + y
