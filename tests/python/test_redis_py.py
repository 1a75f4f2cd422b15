"""redis-py over the adapter, and the methods of both compared. Skipped without redis-py."""

import inspect
import os
import tempfile
import threading
import time
import unittest

import lsmkv

try:
    import redis
except ImportError:
    redis = None

# Parameters for what Redis 7.0 does not have, or a cluster only.
NEWER = {
    "set": {"ifeq", "ifne", "ifdeq", "ifdne"},
    "hscan": {"no_values"},
    "hscan_iter": {"no_values"},
}
# Methods that are not commands, or say more here.
OURS = {"transaction", "close", "pipeline", "select", "execute_command"}


def public(kind):
    return {name for name in dir(kind) if not name.startswith("_") and callable(getattr(kind, name))}


@unittest.skipIf(redis is None, "redis-py is not installed")
class Signatures(unittest.TestCase):
    def test_every_command_has_the_parameters_of_redis_py(self):
        compared = 0
        for name in sorted((public(lsmkv.Pipeline) & public(redis.Redis)) - OURS):
            with self.subTest(name):
                ours = inspect.signature(getattr(lsmkv.DB, name, getattr(lsmkv.Pipeline, name)))
                theirs = inspect.signature(getattr(redis.Redis, name))
                newer = NEWER.get(name, set())
                expected = [
                    (p.name, p.kind, p.default)
                    for p in theirs.parameters.values()
                    if p.name not in newer and p.kind is not p.VAR_KEYWORD
                ]
                found = [(p.name, p.kind, p.default) for p in ours.parameters.values()]
                self.assertEqual(found, expected)
                compared += 1
        self.assertGreaterEqual(compared, 147)

    def test_every_command_of_the_table_is_a_method(self):
        root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
        with open(os.path.join(root, "docs", "COMMANDS.md")) as table:
            rows = [line.split("|")[1].strip() for line in table if line.startswith("| ")]
        names = {name.lower() for name in rows if name.isupper() or "_" in name}
        self.assertGreaterEqual(len(names), 140)
        # These have a method for each subcommand.
        methods = {"script": "script_load", "function": "function_load", "memory": "memory_usage"}
        methods["del"] = "delete"
        missing = {name for name in names if not hasattr(lsmkv.DB, methods.get(name, name))}
        self.assertEqual(missing, set())


@unittest.skipIf(redis is None, "redis-py is not installed")
class Messages(unittest.TestCase):
    """redis-py's pub/sub and blocking pops, in process."""

    def setUp(self):
        pool = lsmkv.ConnectionPool(":memory:")
        self.addCleanup(pool.close)
        self.client = redis.Redis(connection_pool=pool)

    def test_a_subscriber_receives_messages(self):
        channels = self.client.pubsub()
        channels.subscribe("a", "b")
        channels.psubscribe("n*")
        confirmed = [channels.get_message(timeout=1) for _ in range(3)]
        self.assertEqual([it["data"] for it in confirmed], [1, 2, 3])
        self.assertEqual([self.client.publish("a", "x"), self.client.publish("news", "y")], [1, 1])
        self.assertEqual(channels.get_message(timeout=1)["data"], b"x")
        self.assertEqual(channels.get_message(timeout=1)["channel"], b"news")
        self.assertIsNone(channels.get_message(timeout=0.01))
        self.assertGreater(channels.connection._sock.fileno(), 0)
        threading.Timer(0.02, self.client.publish, ("b", "late")).start()
        self.assertEqual(next(channels.listen())["data"], b"late")
        channels.unsubscribe()
        channels.close()
        self.assertEqual(self.client.publish("a", "nobody"), 0)

    def test_a_pop_waits_for_a_push(self):
        threading.Timer(0.02, self.client.rpush, ("queue", "job")).start()
        self.assertEqual(self.client.blpop("queue", timeout=30), (b"queue", b"job"))
        self.assertIsNone(self.client.brpop(["queue"], timeout=0.01))


    def test_a_client_that_is_closed_wakes_its_pop(self):
        ended = []

        def wait():
            try:
                self.client.blpop("queue")
            except redis.ConnectionError as error:
                ended.append(str(error))

        thread = threading.Thread(target=wait)
        thread.start()
        while self.client.info("clients")["blocked_clients"] == 0:
            pass
        self.client.connection_pool.disconnect()
        thread.join(10)
        self.assertFalse(thread.is_alive())
        self.assertIn("closed", ended[0])
        self.client.rpush("queue", "kept")
        self.assertEqual(self.client.lrange("queue", 0, -1), [b"kept"])

    def test_a_lock_is_released(self):
        with self.client.lock("lock", timeout=10) as lock:
            self.assertTrue(lock.owned())
            self.assertFalse(self.client.lock("lock").acquire(blocking=False))
        self.assertEqual(self.client.exists("lock"), 0)


@unittest.skipIf(redis is None, "redis-py is not installed")
class AsAServer(unittest.TestCase):
    """What programs ask a server for."""

    def setUp(self):
        self.pool = lsmkv.ConnectionPool(":memory:", client_name="worker", databases=4)
        self.addCleanup(self.pool.close)
        self.client = redis.Redis(connection_pool=self.pool)

    def test_info(self):
        self.client.set("k", "v", ex=100)
        found = self.client.info()
        self.assertEqual((found["redis_version"], found["role"]), ("7.0.15", "master"))
        self.assertEqual((found["loading"], found["cluster_enabled"]), (0, 0))
        self.assertEqual((found["db0"]["keys"], found["db0"]["expires"]), (1, 1))
        self.assertEqual(found["process_id"], os.getpid())
        self.assertGreater(found["used_memory"], 0)
        self.assertEqual(self.client.info("memory")["maxmemory_policy"], "noeviction")
        self.assertNotIn("role", self.client.info("memory"))
        with self.client.pipeline() as pipe:
            self.assertIn("connected_clients", pipe.info("clients").execute()[0])

    def test_config(self):
        self.assertEqual(self.client.config_get("maxmemory-policy"), {"maxmemory-policy": "noeviction"})
        self.assertEqual(self.client.config_get("databases", "timeout"), {"databases": "4", "timeout": "0"})
        self.assertTrue(self.client.config_set("notify-keyspace-events", "Ex"))
        self.assertEqual(self.client.config_get("notify*")["notify-keyspace-events"], "xE")
        with self.assertRaisesRegex(redis.ResponseError, "when the store is opened"):
            self.client.config_set("maxmemory", 100)

    def test_clients(self):
        self.assertEqual(self.client.client_getname(), "worker")
        own = self.client.client_id()
        self.assertEqual([it["name"] for it in self.client.client_list() if it["id"] == str(own)], ["worker"])
        self.assertEqual(self.client.client_info()["name"], "worker")
        self.assertEqual(self.client.client_no_evict("ON"), b"OK")
        seconds, micros = self.client.time()
        self.assertTrue(abs(seconds - time.time()) < 5 and 0 <= micros < 10**6)

    def test_memory_usage(self):
        self.client.set("k", b"x" * 10_000)
        self.assertTrue(10_000 < self.client.memory_usage("k") < 11_000)
        self.client.rpush("l", *range(1000))
        self.assertEqual(self.client.memory_usage("none"), None)
        self.assertTrue(1000 < self.client.memory_usage("l", samples=0) < 100_000)

    def test_the_last_client_closes_the_store_that_it_opened(self):
        with tempfile.TemporaryDirectory() as scratch:
            path = os.path.join(scratch, "store")
            first, second = lsmkv.Redis(path, decode_responses=True), lsmkv.Redis(path)
            self.assertTrue(first.set("k", "v") and first.get("k") == "v")
            first.close()
            first.close()
            self.assertEqual(second.get("k"), b"v")
            with self.assertRaises(lsmkv.BusyError):
                lsmkv.open(path)
            with self.assertRaisesRegex(ValueError, "other options"):
                lsmkv.Redis(path, sync="always")
            second.close()
            with lsmkv.open(path) as db:
                with lsmkv.ConnectionPool(store=db) as pool:
                    self.assertEqual(redis.Redis(connection_pool=pool).get("k"), b"v")
                self.assertEqual(db.get("k"), b"v")


@unittest.skipIf(redis is None, "redis-py is not installed")
class SameAnswers(unittest.TestCase):
    """The same calls on both give the same: values and types."""

    CALLS = [
        ("set", "k", "v"), ("set", "k", "w", {"nx": True}), ("set", "k", "w", {"get": True}),
        ("get", "k"), ("get", "none"), ("append", "k", "x"), ("incrby", "n", 5), ("decr", "n"),
        ("incrbyfloat", "n", 1.5), ("mset", {"a": 1, "b": 2}), ("msetnx", {"a": 1}),
        ("mget", "a", "none"), ("setnx", "a", 1), ("setex", "e", 100, "v"), ("psetex", "e", 100000, "v"),
        ("getrange", "k", 0, 0), ("setrange", "k", 0, "z"), ("strlen", "k"), ("getset", "k", "q"),
        ("getex", "k"), ("lcs", "a", "b"), ("setbit", "bits", 3, 1), ("bitcount", "bits"),
        ("bitpos", "bits", 1), ("bitop", "NOT", "nb", "bits"), ("getbit", "bits", 3),
        ("hset", "h", "f", 1), ("hset", "h", {"mapping": {"g": 2}}), ("hget", "h", "f"),
        ("hgetall", "h"), ("hgetall", "none"), ("hmget", "h", ["f", "none"]), ("hmset", "h", {"i": 3}),
        ("hexists", "h", "f"), ("hsetnx", "h", "f", 1), ("hincrby", "h", "f", 2),
        ("hincrbyfloat", "h", "f", 0.5), ("hkeys", "h"), ("hvals", "h"), ("hlen", "h"),
        ("hstrlen", "h", "f"), ("hdel", "h", "f"), ("hrandfield", "h", -4, True), ("hscan", "h"),
        ("rpush", "l", 1, 2, 3, 4), ("lrange", "l", 0, -1), ("lpop", "l"), ("lpop", "l", 2), ("lpop", "none"),
        ("lpos", "l", 4), ("linsert", "l", "AFTER", 4, 5), ("lset", "l", 0, 9), ("lrem", "l", 0, 5),
        ("ltrim", "l", 0, 5), ("lmove", "l", "m"), ("lindex", "m", 0), ("lmpop", 1, "m", {"direction": "LEFT"}),
        ("sadd", "s", "a", "b"), ("smembers", "s"), ("sismember", "s", "a"), ("smismember", "s", ["a", "z"]),
        ("sinter", "s", "s"), ("sdiff", "s", "none"), ("sunion", ["s"]), ("sintercard", 1, ["s"]),
        ("smove", "s", "t", "a"), ("srem", "s", "z"), ("spop", "t", 2), ("spop", "t"), ("sscan", "s"),
        ("srandmember", "s"), ("srandmember", "s", 2),
        ("zadd", "z", {"a": 1, "b": 2.5}), ("zadd", "z", {"a": 1}, {"incr": True}), ("zscore", "z", "b"),
        ("zscore", "z", "none"), ("zmscore", "z", ["a", "none"]), ("zrange", "z", 0, -1),
        ("zrange", "z", 0, -1, {"withscores": True}), ("zrangebyscore", "z", 1, 3, {"withscores": True}),
        ("zrevrange", "z", 0, 0, {"withscores": True}), ("zrevrangebyscore", "z", 3, 1),
        ("zrank", "z", "b"), ("zrevrank", "z", "b"), ("zincrby", "z", 1, "a"), ("zcard", "z"),
        ("zcount", "z", 1, 2), ("zscan", "z"), ("zdiff", ["z", "none"], {"withscores": True}),
        ("zinter", ["z", "z"], {"withscores": True}), ("zunion", ["z"], {"withscores": True}),
        ("zunionstore", "y", ["z", "z"]), ("zrangestore", "y", "z", 0, -1), ("zrandmember", "z", -3),
        ("zmpop", 1, ["y"], {"min": True}), ("zpopmin", "z"), ("zpopmax", "z", 2), ("zpopmin", "none"),
        ("expire", "k", 100), ("expire", "none", 100), ("ttl", "none"), ("persist", "k"), ("type", "k"),
        ("exists", "k", "none"), ("rename", "k", "k2"), ("renamenx", "k2", "a"), ("copy", "k2", "k3"),
        ("object", "encoding", "n"), ("keys", "k*"), ("scan", 0, {"count": 1000}), ("dbsize",), ("move", "k3", 1),
        ("rpush", "srt", 3, 1, 2), ("sort", "srt"), ("sort", "srt", {"get": ["#", "x*"], "groups": True}),
        ("sort", "srt", {"store": "sorted"}), ("unlink", "a"), ("delete", "b", "none"), ("touch", "n"),
        ("swapdb", 0, 1), ("flushdb",), ("randomkey",), ("flushall",),
    ]

    def compare(self, **options):
        with lsmkv.ConnectionPool(**options) as pool, lsmkv.open(**options) as ours:
            theirs = redis.Redis(connection_pool=pool)
            pairs = [(self.result(theirs, call), self.result(ours, call), call) for call in self.CALLS]
            for expected, found, call in pairs:
                with self.subTest(call=call):
                    if call[0] in ("srandmember", "hrandfield", "zrandmember"):
                        expected, found = type(expected), type(found)
                    self.assertEqual(found, expected)
                    self.assertIs(type(found), type(expected))

    def result(self, client, call):
        options = call[-1] if isinstance(call[-1], dict) and call[0] not in ("mset", "msetnx") else {}
        if call[0] in ("zadd", "hmset") and len(call) == 3:
            options = {}
        args = call[1:-1] if options else call[1:]
        return getattr(client, call[0])(*args, **options)

    def test_as_bytes(self):
        self.compare()

    def test_as_text(self):
        self.compare(decode_responses=True)


@unittest.skipIf(redis is None, "redis-py is not installed")
class Adapter(unittest.TestCase):
    def setUp(self):
        self.pool = lsmkv.ConnectionPool()
        self.addCleanup(self.pool.close)
        self.r = redis.Redis(connection_pool=self.pool)

    def test_a_store_survives_the_pool(self):
        with tempfile.TemporaryDirectory() as scratch:
            path = os.path.join(scratch, "store")
            with lsmkv.ConnectionPool(path, sync="always", max_connections=3) as pool:
                redis.Redis(connection_pool=pool).set("k", "v")
            with lsmkv.ConnectionPool(path, decode_responses=True) as pool:
                self.assertEqual(redis.Redis(connection_pool=pool).get("k"), "v")

    def test_pipelines_and_transactions(self):
        r = self.r
        self.assertTrue(r.ping())
        self.assertEqual(r.pipeline().set("a", 1).incr("a").execute(), [True, 2])
        self.assertEqual(r.pipeline(transaction=False).get("a").get("b").execute(), [b"2", None])
        with self.assertRaisesRegex(redis.ResponseError, "WRONGTYPE"):
            r.pipeline().lpush("a", 1).execute()
        with r.pipeline() as pipe:
            pipe.watch("a")
            self.assertEqual(pipe.get("a"), b"2")
            r.set("a", 5)
            pipe.multi()
            pipe.set("a", 6)
            with self.assertRaises(redis.WatchError):
                pipe.execute()

        def add(pipe):
            value = int(pipe.get("a"))
            pipe.multi()
            pipe.set("a", value + 1)

        self.assertEqual(r.transaction(add, "a"), [True])
        self.assertEqual(r.get("a"), b"6")

    def test_errors_are_those_of_redis_py(self):
        with self.assertRaises(redis.ResponseError):
            self.r.execute_command("NOSUCH")
        with self.assertRaises(redis.DataError):
            self.r.set("k", None)
        store = lsmkv.open(max_value_bytes=8)
        self.addCleanup(store.close)
        small = redis.Redis(connection_pool=lsmkv.ConnectionPool(store=store))
        with self.assertRaises(redis.ResponseError):
            small.set("k", "123456789")
        self.assertEqual(store.get("k"), None)
        self.pool.close()
        with self.assertRaisesRegex(redis.RedisError, "closed"):
            self.r.get("k")

    def test_databases_are_apart(self):
        other = redis.Redis(connection_pool=lsmkv.ConnectionPool(store=self.pool.store, db=1))
        other.set("k", 1)
        self.assertIsNone(self.r.get("k"))
        self.assertEqual(self.pool.store.select(1).get("k"), b"1")

    def test_threads_have_a_connection_each(self):
        def work():
            for _ in range(50):
                self.r.incr("n")

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(self.r.get("n"), b"200")


if __name__ == "__main__":
    unittest.main()
