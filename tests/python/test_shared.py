"""A store that several processes share: prefork servers, multiprocessing, redis-py."""

import multiprocessing
import os
import signal
import tempfile
import time
import unittest

import lsmkv

_db = None


def _open_in_worker(path):
    """What a pool of processes runs first in each worker."""
    global _db
    _db = lsmkv.open(path, shared=True)


def _work(number):
    with _db.pipeline() as pipe:
        pipe.incr("done")
        pipe.sadd("workers", os.getpid())
        pipe.execute()
    return number


def _forked(body):
    """Runs `body` in a forked child, as gunicorn runs a worker. Returns its process number."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        body()
        code = 0
    except BaseException as error:  # the child must not go on as a second test run
        print("child:", type(error).__name__, error, flush=True)
    finally:
        os._exit(code)


def _master_without_store(path):
    """A master that never opens a store, and workers that open it themselves; one of them is killed."""
    test = Shared()

    def worker():
        own = lsmkv.open(path, shared=True)
        own.sadd("ready", os.getpid())
        while own.get("stop") is None:
            try:
                own.incr("n:%d" % os.getpid())
            except lsmkv.IOError as error:
                # The holder was killed during the call.
                assert "may or may not have run" in str(error), error
            time.sleep(0.001)
        own.close()

    workers = [_forked(worker) for _ in range(3)]
    lock = os.path.join(path, "LOCK")

    def holder():
        try:
            with open(lock) as file:
                return int(file.read() or 0)
        except FileNotFoundError:
            return 0

    test.eventually(lambda: holder() in workers)
    mine = lsmkv.open(path, shared=True)
    test.eventually(lambda: mine.scard("ready") == 3)
    killed = holder()
    os.kill(killed, signal.SIGKILL)
    test.assertEnds(killed, -signal.SIGKILL)
    rest = [child for child in workers if child != killed]
    before = [int(mine.get("n:%d" % child) or 0) for child in rest]
    test.eventually(
        lambda: all(int(mine.get("n:%d" % child) or 0) > n for child, n in zip(rest, before))
    )
    mine.set("stop", "1")
    for child in rest:
        test.assertEnds(child)
    mine.close()


class Shared(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.path = os.path.join(scratch.name, "store")

    def assertEnds(self, child, code=0):
        _, status = os.waitpid(child, 0)
        self.assertEqual(os.waitstatus_to_exitcode(status), code)

    def eventually(self, is_so):
        deadline = time.monotonic() + 60
        while not is_so():
            self.assertLess(time.monotonic(), deadline, "it did not happen")
            time.sleep(0.01)

    def test_two_handles_share_a_store_and_the_second_takes_over(self):
        first = lsmkv.open(self.path, shared=True)
        second = lsmkv.open(self.path, shared=True)
        first.hset("h", "f", "v")
        self.assertEqual(second.hget("h", "f"), b"v")
        self.assertEqual(second.rpush("l", "a", "b"), 2)
        with second.batch() as batch:
            batch.set("x", "1")
            batch.set("y", "2")
        self.assertEqual(first.mget("x", "y"), [b"1", b"2"])
        with self.assertRaises(lsmkv.WrongTypeError):
            second.incr("l")
        with first.pubsub() as channels:
            channels.subscribe("news")
            self.assertEqual(channels.get_message()["type"], "subscribe")
            self.assertEqual(second.publish("news", "hello"), 1)
            self.assertEqual(channels.get_message(10)["data"], b"hello")
        first.close()
        self.assertEqual(second.lrange("l", 0, -1), [b"a", b"b"])
        second.close()

    def test_a_prefork_server_that_opens_the_store_before_its_workers(self):
        """gunicorn --preload: the master holds the store, and each worker opens it again."""
        master = lsmkv.open(self.path, shared=True)
        master.set("from", "master")

        def worker():
            try:
                master.get("from")
            except lsmkv.ForkedError:
                pass
            else:
                raise AssertionError("the inherited handle must be dead")
            own = lsmkv.open(self.path, shared=True)
            assert own.get("from") == b"master"
            for _ in range(100):
                own.incr("n")
            own.close()

        workers = [_forked(worker) for _ in range(4)]
        for child in workers:
            self.assertEnds(child)
        self.assertEqual(master.get("n"), b"400")
        master.close()

    def test_workers_of_a_master_that_is_gone_are_told_and_another_process_helps_them(self):
        """A worker that was forked while the store was open never holds it."""
        master = lsmkv.open(self.path, shared=True)
        ready, go = os.pipe(), os.pipe()

        def worker():
            own = lsmkv.open(self.path, shared=True, connect_timeout_ms=300)
            own.set("k", "v")
            os.write(ready[1], b"1")
            os.read(go[0], 1)
            try:
                own.get("k")
            except lsmkv.BusyError as error:
                assert "forked while a store was open" in str(error), error
            else:
                raise AssertionError("there is no holder")
            os.write(ready[1], b"2")
            os.read(go[0], 1)
            assert own.get("k") == b"v"

        child = _forked(worker)
        self.assertEqual(os.read(ready[0], 1), b"1")
        master.close()
        os.write(go[1], b"x")
        self.assertEqual(os.read(ready[0], 1), b"2")
        # One that inherited nothing open may hold it: here a new open of the old master.
        again = lsmkv.open(self.path, shared=True)
        os.write(go[1], b"x")
        self.assertEnds(child)
        self.assertEqual(again.get("k"), b"v")
        again.close()

    def test_workers_that_open_the_store_themselves_take_over_from_each_other(self):
        """gunicorn without --preload: a worker that is killed is followed by another."""
        # A new process: other tests of this one may have left a store open.
        spawned = multiprocessing.get_context("spawn")
        master = spawned.Process(target=_master_without_store, args=(self.path,))
        master.start()
        master.join()
        self.assertEqual(master.exitcode, 0)

    def test_multiprocessing_by_fork_and_by_spawn(self):
        for method in ("fork", "spawn"):
            with lsmkv.open(self.path, shared=True) as db:
                db.flushall()
                context = multiprocessing.get_context(method)
                with context.Pool(3, _open_in_worker, (self.path,)) as pool:
                    self.assertEqual(sorted(pool.map(_work, range(60), 5)), list(range(60)))
                self.assertEqual(db.get("done"), b"60", method)
                self.assertGreaterEqual(db.scard("workers"), 1)

    def test_redis_py_in_several_processes(self):
        try:
            import redis
        except ImportError:
            self.skipTest("redis-py is not installed")
        pool = lsmkv.ConnectionPool(self.path, shared=True)
        client = redis.Redis(connection_pool=pool)
        client.set("k", "v")

        def worker():
            own = redis.Redis(connection_pool=lsmkv.ConnectionPool(self.path, shared=True))
            assert own.get("k") == b"v"
            with own.pipeline() as pipe:
                pipe.incr("n")
                pipe.lpush("queue", "from the child")
                pipe.execute()

        child = _forked(worker)
        self.assertEqual(client.blpop("queue", 30), (b"queue", b"from the child"))
        self.assertEnds(child)
        self.assertEqual(client.get("n"), b"1")
        client.close()
        pool.disconnect()


if __name__ == "__main__":
    unittest.main()
