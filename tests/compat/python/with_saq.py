"""saq: jobs, scheduled jobs, retries; the worker runs on the scenario's loop."""

import asyncio
import time

from saq import Queue, Worker
from saq.queue.redis import RedisQueue

from scenario import async_client, equal, main


async def add(_context, *, x, y):
    return x + y


async def fails_once(context):
    if context["job"].attempts < 2:
        raise ValueError("again")
    return context["job"].attempts


async def with_worker(place, story):
    def connected():
        return RedisQueue(async_client(place)) if place.in_process else Queue.from_url(place.url)

    queue, served = connected(), connected()
    await queue.connect()
    worker = Worker(served, functions=[add, fails_once], timers={"schedule": 1}, dequeue_timeout=1)
    running = asyncio.create_task(worker.start())
    # A worker begins by sweeping jobs that another left. It then also sweeps those that it just took.
    for _ in range(30):
        await asyncio.sleep(0.1)
        if await queue.redis.exists("saq:default:sweep"):
            break
    told = asyncio.create_task(story(queue))
    await asyncio.wait([running, told], return_when=asyncio.FIRST_COMPLETED, timeout=30)
    if not told.done():
        assert running.done(), "the story does not end"
        running.result()
        raise AssertionError("the worker ended")
    told.result()
    await worker.stop()


def job(place):
    """Jobs run and their results come back; a failed one is tried again."""

    async def story(queue):
        equal(await queue.apply("add", x=1, y=2, timeout=15), 3)
        equal(await queue.map("add", [{"x": n, "y": n} for n in range(5)]), [0, 2, 4, 6, 8])
        equal(await queue.apply("fails_once", retries=3), 2)

    asyncio.run(with_worker(place, story))


def scheduled(place):
    """A scheduled job waits for its time."""

    async def story(queue):
        begun = time.time()
        job = await queue.enqueue("add", x=1, y=2, scheduled=int(begun) + 3)
        await job.refresh(until_complete=15)
        equal(job.result, 3)
        assert time.time() - begun >= 1.9, "it ran too early"

    asyncio.run(with_worker(place, story))


main(globals())
