"""redis-py's asyncio over the adapter: commands, waits, messages, cancellation. Skipped without
redis-py."""

import asyncio
import os
import tempfile
import threading
import time
import unittest

import lsmkv

try:
    import redis
    import redis.asyncio
    import lsmkv.asyncio
except ImportError:
    redis = None


@unittest.skipIf(redis is None, "redis-py is not installed")
class Asyncio(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self):
        self.store = lsmkv.open()
        self.addCleanup(self.store.close)
        self.pool = lsmkv.asyncio.ConnectionPool(store=self.store)
        self.client = redis.asyncio.Redis(connection_pool=self.pool)

    async def asyncTearDown(self):
        await self.pool.aclose()

    async def test_commands_pipelines_and_transactions(self):
        self.assertTrue(await self.client.set("k", "v"))
        self.assertEqual(await self.client.get("k"), b"v")
        with self.assertRaises(redis.ResponseError):
            await self.client.lpush("k", 1)
        async with self.client.pipeline(transaction=True) as pipe:
            self.assertEqual(await pipe.incr("n").incr("n").hset("h", "f", 1).execute(), [1, 2, 1])
        async with self.client.pipeline(transaction=False) as pipe:
            for number in range(200):
                pipe.rpush("l", number)
            self.assertEqual((await pipe.execute())[-1], 200)
        async with self.client.pipeline() as pipe:
            await pipe.watch("n")
            self.store.set("n", 10)
            pipe.multi()
            pipe.incr("n")
            with self.assertRaises(redis.WatchError):
                await pipe.execute()
        self.assertEqual(self.store.get("n"), b"10")

    async def test_a_pop_waits_beside_others_and_gives_up_in_time(self):
        waits = [asyncio.ensure_future(self.client.blpop(["none", "q"], timeout=20)) for _ in range(3)]
        await asyncio.sleep(0.05)
        self.assertFalse(any(wait.done() for wait in waits))
        # The loop goes on meanwhile, and another thread may push.
        self.assertEqual(await self.client.ping(), True)
        threading.Thread(target=self.store.rpush, args=("q", 1, 2, 3)).start()
        found = [tuple(pair) for pair in await asyncio.wait_for(asyncio.gather(*waits), 10)]
        self.assertEqual(sorted(found), [(b"q", b"1"), (b"q", b"2"), (b"q", b"3")])
        begun = time.monotonic()
        self.assertIsNone(await self.client.bzpopmin("z", timeout=0.2))
        self.assertIsNone(await self.client.blmove("a", "b", 0.1))
        self.assertTrue(0.25 < time.monotonic() - begun < 5)
        self.store.zadd("z", {"m": 1.5})
        self.assertEqual(list(await self.client.bzpopmin("z", timeout=1)), [b"z", b"m", 1.5])
        with self.assertRaises(redis.ResponseError):
            await self.client.blpop("q", timeout="soon")
        with self.assertRaises(redis.ResponseError):
            await self.client.blpop("z2" if await self.client.set("z2", 1) else "", timeout=1)

    async def test_a_cancelled_pop_takes_nothing(self):
        with self.assertRaises(asyncio.TimeoutError):
            await asyncio.wait_for(self.client.blpop("q"), 0.05)
        self.store.rpush("q", "kept")
        self.assertEqual(self.store.lrange("q", 0, -1), [b"kept"])
        self.assertEqual(await self.client.blpop("q"), (b"q", b"kept"))
        # The next reply is that of the next command.
        self.assertEqual(await self.client.echo("x"), b"x")

    async def test_pops_that_are_cancelled_at_any_moment_lose_no_element(self):
        taken, total = [], 400
        done = asyncio.Event()

        async def take():
            while not (done.is_set() and not self.store.exists("q")):
                try:
                    found = await asyncio.wait_for(self.client.blpop("q", timeout=1), 0.002)
                except asyncio.TimeoutError:
                    continue
                if found:
                    taken.append(int(found[1]))

        def push():
            for number in range(total):
                self.store.rpush("q", number)
                time.sleep(0.0005)

        takers = [asyncio.ensure_future(take()) for _ in range(3)]
        await asyncio.get_running_loop().run_in_executor(None, push)
        done.set()
        await asyncio.wait_for(asyncio.gather(*takers), 30)
        self.assertEqual(sorted(taken), list(range(total)))

    async def test_messages_locks_and_scripts(self):
        async with self.client.pubsub() as messages:
            await messages.subscribe("news")
            await messages.psubscribe("n*")
            kinds = [(await messages.get_message(timeout=5))["type"] for _ in range(2)]
            self.assertEqual(kinds, ["subscribe", "psubscribe"])
            self.assertIsNone(await messages.get_message(timeout=0.01))
            threading.Timer(0.02, self.store.publish, ("news", "hello")).start()
            found = [(await messages.get_message(timeout=5))["data"] for _ in range(2)]
            self.assertEqual(found, [b"hello", b"hello"])
        async with self.client.lock("lock", timeout=10):
            self.assertFalse(await self.client.lock("lock", timeout=10).acquire(blocking=False))
        self.assertEqual(await self.client.exists("lock"), 0)
        script = self.client.register_script("return redis.call('INCRBY', KEYS[1], ARGV[1])")
        self.assertEqual(await script(keys=["n"], args=[5]), 5)

    async def test_a_long_command_does_not_stop_the_loop(self):
        ticks = 0

        async def tick():
            nonlocal ticks
            while True:
                await asyncio.sleep(0.005)
                ticks += 1

        ticking = asyncio.ensure_future(tick())
        loop = "local n = 0 for i = 1, 2e7 do n = n + i end return 1"
        self.assertEqual(await self.client.eval(loop, 0), 1)
        ticking.cancel()
        self.assertGreater(ticks, 3)

    async def test_a_close_ends_a_wait(self):
        client = redis.asyncio.Redis(connection_pool=self.pool)
        wait = asyncio.ensure_future(client.blpop("q"))
        await asyncio.sleep(0.05)
        await self.pool.disconnect()
        with self.assertRaises(redis.ConnectionError):
            await asyncio.wait_for(wait, 5)

    async def test_the_last_client_closes_the_store(self):
        with tempfile.TemporaryDirectory() as scratch:
            path = os.path.join(scratch, "store")
            first, second = lsmkv.asyncio.Redis(path), lsmkv.asyncio.Redis(path, decode_responses=True)
            await first.set("k", "v")
            await first.aclose()
            self.assertEqual(await second.get("k"), "v")
            with self.assertRaises(lsmkv.BusyError):
                lsmkv.open(path)
            await second.aclose()
            with lsmkv.open(path) as db:
                self.assertEqual(db.get("k"), b"v")

    async def test_durable_writes_leave_the_loop_to_others(self):
        with tempfile.TemporaryDirectory() as scratch:
            async with lsmkv.asyncio.ConnectionPool(os.path.join(scratch, "s"), sync="always") as pool:
                client = redis.asyncio.Redis(connection_pool=pool)
                found = await asyncio.gather(*(client.incr("n") for _ in range(20)))
                self.assertEqual(sorted(found), list(range(1, 21)))


if __name__ == "__main__":
    unittest.main()
