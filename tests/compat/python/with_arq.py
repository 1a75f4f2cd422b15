"""arq: jobs, deferred jobs, retries; the worker runs on the scenario's loop."""

import asyncio
import time

from arq import Retry, create_pool
from arq.connections import ArqRedis, RedisSettings
from arq.worker import Worker

from scenario import equal, main


async def add(_context, x, y):
    return x + y


async def succeeds_at_third_try(context):
    if context["job_try"] < 3:
        raise Retry(defer=0.1)
    return context["job_try"]


async def connected(place):
    if place.in_process:
        return ArqRedis(place.async_pool())
    return await create_pool(RedisSettings.from_dsn(place.url))


async def with_worker(place, story):
    db = await connected(place)
    worker = Worker(
        [add, succeeds_at_third_try],
        redis_pool=await connected(place),
        handle_signals=False,
        poll_delay=0.05,
    )
    running = asyncio.create_task(worker.async_run())
    told = asyncio.create_task(story(db))
    # A worker that dies ends the scenario with its error.
    await asyncio.wait([running, told], return_when=asyncio.FIRST_COMPLETED)
    if not told.done():
        running.result()
        raise AssertionError("the worker ended")
    told.result()
    running.cancel()


def job(place):
    """Jobs run, their results come back, and a job id is unique."""

    async def story(db):
        equal(await (await db.enqueue_job("add", 1, 2)).result(timeout=15), 3)
        once = await db.enqueue_job("add", 2, 2, _job_id="once", _defer_by=0.3)
        equal(await db.enqueue_job("add", 2, 2, _job_id="once"), None)
        equal(await once.result(timeout=15), 4)
        retried = await db.enqueue_job("succeeds_at_third_try")
        equal(await retried.result(timeout=15), 3)

    asyncio.run(with_worker(place, story))


def deferred(place):
    """A deferred job runs at its time."""

    async def story(db):
        begun = time.monotonic()
        job = await db.enqueue_job("add", 1, 2, _defer_by=1.5)
        equal(await job.result(timeout=15), 3)
        assert time.monotonic() - begun >= 1.4, "it ran too early"

    asyncio.run(with_worker(place, story))


main(globals())
