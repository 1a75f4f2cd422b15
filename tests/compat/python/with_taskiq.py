"""taskiq-redis: its three brokers, its results, its schedule."""

import asyncio
import os

from scenario import client, equal, main, program, wait_until, worker


def run(place, kind, ready):
    """Tasks run in a worker, and their results come back."""
    os.environ.update(COMPAT_URL=place.url, COMPAT_BROKER=kind)
    import taskiq_app

    async def story():
        await taskiq_app.broker.startup()
        wait_until(ready)
        tasks = [await taskiq_app.add.kiq(n, n) for n in range(5)]
        results = [await task.wait_result(timeout=10) for task in tasks]
        equal([result.return_value for result in results], [0, 2, 4, 6, 8])
        assert not any(result.is_err for result in results)
        await taskiq_app.broker.shutdown()

    with worker(program("taskiq"), "worker", "taskiq_app:broker", "-w", "1"):
        asyncio.run(story())


def list_broker(place):
    """Tasks through a list, and their results."""
    run(place, "list", lambda: True)


def pubsub_broker(place):
    """Tasks as messages, and their results."""
    db = client(place)
    run(place, "pubsub", lambda: db.pubsub_numsub("taskiq")[0][1] == 1)


def stream_broker(place):
    """Tasks through a stream with a consumer group, and their results."""
    db = client(place)
    run(place, "stream", lambda: db.exists("taskiq"))


def schedule_source(place):
    """A schedule is kept, read back and deleted."""
    from taskiq import ScheduledTask
    from taskiq_redis import RedisScheduleSource

    async def story():
        source = RedisScheduleSource(place.url)
        task = ScheduledTask(task_name="add", labels={}, args=[1], kwargs={}, cron="* * * * *")
        await source.add_schedule(task)
        found = await source.get_schedules()
        equal([(one.task_name, one.cron) for one in found], [("add", "* * * * *")])
        await source.delete_schedule(found[0].schedule_id)
        equal(await source.get_schedules(), [])
        await source.shutdown()

    asyncio.run(story())


main(globals())
