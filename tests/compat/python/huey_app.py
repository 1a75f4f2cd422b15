"""The application of with_huey.py, which its consumer loads."""

import os

from huey import RedisHuey, crontab

huey = RedisHuey("compat", url=os.environ["COMPAT_URL"])


@huey.task()
def add(x, y):
    return x + y


@huey.task(retries=2)
def fails_once(key):
    if huey.storage.conn.incr(key) == 1:
        raise ValueError("again")
    return "done"


@huey.periodic_task(crontab(minute="*"))
def every_minute():
    huey.storage.conn.set("every-minute", 1)
