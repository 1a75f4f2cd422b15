"""redis-py: locks, pipelines, messages, scripts, asyncio."""

import asyncio
import threading
import time

import redis

from scenario import async_client, client, equal, main, raises, wait_until


def lock(place):
    """A lock excludes others, is extended, and is free again after its release."""
    db = client(place)
    with db.lock("lock", timeout=10) as held:
        assert held.locked() and db.exists("lock")
        assert not client(place).lock("lock", timeout=10).acquire(blocking=False)
        assert held.extend(10) and 10 < db.ttl("lock") <= 20
        assert held.reacquire() and db.ttl("lock") <= 10
    equal(db.exists("lock"), 0)
    other = client(place).lock("lock", timeout=10)
    assert other.acquire(blocking=False)
    db.set("lock", "of somebody else")
    with raises(redis.exceptions.LockError):
        other.release()
    equal(db.get("lock"), b"of somebody else")


def pipeline(place):
    """Pipelines, transactions, and WATCH that notices a change."""
    db = client(place, decode_responses=True)
    with db.pipeline() as pipe:
        equal(pipe.set("n", 1).incr("n").lpush("l", "a", "b").execute(), [True, 2, 2])
    with db.pipeline() as pipe:
        pipe.watch("n")
        client(place).set("n", 10)
        pipe.multi()
        pipe.incr("n")
        with raises(redis.WatchError):
            pipe.execute()
    equal(db.transaction(lambda pipe: (pipe.multi(), pipe.incr("n")), "n"), [11])
    with db.pipeline(transaction=False) as pipe:
        replies = pipe.set("s", "v").lpush("s", 1).get("s").execute(raise_on_error=False)
    assert replies[0] is True and isinstance(replies[1], redis.ResponseError), replies
    equal(replies[2], "v")


def pubsub(place):
    """Messages arrive, by channel, by pattern and in a thread."""
    db = client(place, decode_responses=True)
    with db.pubsub() as messages:
        messages.subscribe("news")
        messages.psubscribe("n*s")
        kinds = [wait_until(lambda: messages.get_message(timeout=1))["type"] for _ in "ab"]
        equal(kinds, ["subscribe", "psubscribe"])
        equal(db.publish("news", "hello"), 2)
        found = [wait_until(lambda: messages.get_message(timeout=1)) for _ in "ab"]
        equal([m["type"] for m in found], ["message", "pmessage"])
        equal([m["data"] for m in found], ["hello", "hello"])
        equal(db.pubsub_numsub("news"), [("news", 1)])
    received = []
    messages = db.pubsub()
    messages.subscribe(jobs=lambda message: received.append(message["data"]))
    thread = messages.run_in_thread(sleep_time=0.05)
    wait_until(lambda: db.publish("jobs", "job"))
    wait_until(lambda: received)
    thread.stop()
    thread.join()
    equal(received[0], "job")


def blocking_pop(place):
    """A blocked BLPOP is woken by a push of another client, and gives up in time."""
    taken = []
    db = client(place)
    taker = threading.Thread(target=lambda: taken.append(client(place).blpop("queue", timeout=10)))
    taker.start()
    time.sleep(0.3)
    assert taker.is_alive(), "it does not wait"
    db.rpush("queue", "job")
    taker.join(10)
    equal([tuple(pair) for pair in taken], [(b"queue", b"job")])
    equal(db.blpop("queue", timeout=0.1), None)


def script(place):
    """A script reads, decides and writes in one step."""
    db = client(place)
    take = db.register_script(
        "local left = tonumber(redis.call('GET', KEYS[1]) or '0') "
        "if left < tonumber(ARGV[1]) then return {err = 'NOTENOUGH only ' .. left} end "
        "return redis.call('DECRBY', KEYS[1], ARGV[1])"
    )
    db.set("stock", 5)
    equal(take(keys=["stock"], args=[3]), 2)
    with raises(redis.ResponseError):
        take(keys=["stock"], args=[3])
    equal(db.get("stock"), b"2")
    with db.pipeline() as pipe:
        take(keys=["stock"], args=[1], client=pipe)
        equal(pipe.execute(), [1])


def asyncio_client(place):
    """asyncio: commands, a pipeline, a blocked pop beside others, a lock, a message."""

    async def story():
        db = async_client(place, decode_responses=True)
        assert await db.set("k", "v") and await db.get("k") == "v"
        async with db.pipeline(transaction=True) as pipe:
            equal(await pipe.incr("n").incr("n").execute(), [1, 2])
        taken = asyncio.create_task(db.blpop("queue", timeout=10))
        await asyncio.sleep(0.1)
        await db.rpush("queue", "job")
        equal(tuple(await taken), ("queue", "job"))
        async with db.pubsub() as messages:
            await messages.subscribe("news")
            equal((await messages.get_message(timeout=5))["type"], "subscribe")
            equal(await db.publish("news", "hello"), 1)
            equal((await messages.get_message(timeout=5))["data"], "hello")
        async with db.lock("lock", timeout=10):
            assert not await db.lock("lock", timeout=10).acquire(blocking=False)
        equal(await db.exists("lock"), 0)
        await db.aclose()

    asyncio.run(story())


main(globals())
