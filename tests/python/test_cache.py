"""`lsmkv.Cache`, compared with diskcache where that is installed."""

import inspect
import io
import os
import pickle
import random
import shutil
import tempfile
import threading
import time
import unittest

import lsmkv

try:
    import diskcache
except ImportError:
    diskcache = None

# Numbers from 1 on are elements of the queue without a name.
KEYS = [-1, -2.5, -2.0, -2, -7, "a", "b", "", b"a", b"\x00\xff", ("t", 1), None, True, 10**30, -1e300]
VALUES = [0, 5, -3, 1.5, "text", b"bytes", None, True, (1, "x"), {"k": [1]}, "é", ""]
TAGS = [None, "red", "blue", 7, b"x"]
EXPIRES = [None, None, 1000, 2000.5, -1]
SIDES = ["front", "back"]
PREFIXES = [None, None, "q", "jobs"]


def calls(random_numbers):
    """One random call: the name of a method and its arguments."""
    pick = random_numbers.choice
    key, value, expire, tag = pick(KEYS), pick(VALUES), pick(EXPIRES), pick(TAGS)
    both = {"expire_time": pick([True, False]), "tag": pick([True, False])}
    return pick(
        [
            ("set", (key, value), {"expire": expire, "tag": tag}),
            ("set", (key, value), {}),
            ("__setitem__", (key, value), {}),
            ("add", (key, value), {"expire": expire, "tag": tag}),
            ("get", (key,), {"default": "none", "tag": both["tag"]}),
            ("get", (key,), {}),
            ("__getitem__", (key,), {}),
            ("__contains__", (key,), {}),
            ("incr", (key,), {"delta": pick([1, 5, -2]), "default": pick([0, 10, None])}),
            ("decr", (key,), {}),
            ("delete", (key,), {}),
            ("__delitem__", (key,), {}),
            ("pop", (key,), {"default": "none", "tag": both["tag"]}),
            ("touch", (key,), {"expire": expire}),
            ("push", (value,), {"prefix": pick(PREFIXES), "side": pick(SIDES), "expire": expire, "tag": tag}),
            ("pull", (), {"prefix": pick(PREFIXES), "side": pick(SIDES), "tag": both["tag"]}),
            ("peek", (), {"prefix": pick(PREFIXES), "side": pick(SIDES)}),
            ("peekitem", (), {"last": pick([True, False]), "tag": both["tag"]}),
            ("expire", (), {}),
            ("evict", (tag,), {}) if tag is not None else ("__len__", (), {}),
            ("__len__", (), {}),
            ("__iter__", (), {}),
            ("__reversed__", (), {}),
            ("iterkeys", (), {}),
            ("stats", (), {"enable": True}),
        ]
    )


def answer(cache, call):
    name, args, kwargs = call
    try:
        found = getattr(cache, name)(*args, **kwargs)
    except (KeyError, TypeError, ValueError) as error:
        return type(error).__name__
    if name == "__delitem__":
        return None
    if name in ("__iter__", "__reversed__"):
        found = list(found)
    if name == "iterkeys":
        # Keys that have to be pickled come last here, and among the bytes there.
        found = [key for key in found if isinstance(key, (int, float, str)) and key is not True]
        found = [key for key in found if not isinstance(key, int) or key < 2**63]
    return repr(found)


class Caches(unittest.TestCase):
    def directory(self):
        directory = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, directory, True)
        return os.path.join(directory, "cache")

    def cache(self, **settings):
        cache = lsmkv.Cache(self.directory(), **settings)
        self.addCleanup(cache.close)
        return cache

    @unittest.skipIf(diskcache is None, "diskcache is not installed")
    def test_random_calls_give_the_answers_of_diskcache(self):
        for seed in range(int(os.environ.get("LSMKV_CACHE_SEEDS", "4"))):
            numbers = random.Random(seed)
            theirs, ours = diskcache.Cache(self.directory()), self.cache()
            told = []
            for step in range(400):
                call = calls(numbers)
                told.append(call)
                expected, found = answer(theirs, call), answer(ours, call)
                self.assertEqual(found, expected, "seed %d, step %d: %r" % (seed, step, told[-5:]))
                if step % 100 == 99:
                    ours.close()
                    self.assertEqual(ours.check(), [])
            self.assertEqual(ours.clear(), theirs.clear())
            self.assertEqual((len(ours), ours.volume()), (0, 0))
            theirs.close()

    @unittest.skipIf(diskcache is None, "diskcache is not installed")
    def test_every_method_of_diskcache_is_there_with_its_arguments(self):
        methods = [
            name for name, member in vars(diskcache.Cache).items()
            if inspect.isfunction(member) and (name.startswith("__") or not name.startswith("_"))
        ]
        self.assertGreater(len(methods), 35)
        for name in methods:
            parameters = [
                [(it.name, str(it.default), it.kind) for it in inspect.signature(getattr(cache, name)).parameters.values()]
                for cache in (lsmkv.Cache, diskcache.Cache)
            ]
            if name == "__init__":
                # There are no other ways to keep values.
                parameters[1] = [it for it in parameters[1] if it[0] != "disk"]
            elif name in ("__exit__", "reset"):
                # The names of the rest, and another mark for no value.
                parameters = [[kind for _, _, kind in it] for it in parameters]
            self.assertEqual(parameters[0], parameters[1], name)
        for name in ("directory", "timeout"):
            self.assertIsInstance(getattr(lsmkv.Cache, name), property)

    def test_values_expiry_and_tags_survive_a_close(self):
        cache = self.cache()
        cache.set("k", {"a": 1}, expire=100, tag="t")
        cache.set("file", io.BytesIO(b"contents"), read=True)
        cache.close()
        value, expires, tag = cache.get("k", expire_time=True, tag=True)
        self.assertEqual((value, tag), ({"a": 1}, "t"))
        self.assertTrue(0 < expires - time.time() <= 100)
        with cache.read("file") as file:
            self.assertEqual(file.read(), b"contents")
        # An int of any size is a number; diskcache pickles those beyond 64 bits.
        self.assertEqual(cache.incr("big", default=2**80), 2**80 + 1)
        self.assertEqual(cache.incr("big"), 2**80 + 2)
        cache.set("soon", 1, expire=0.05)
        self.assertIn("soon", cache)
        time.sleep(0.06)
        self.assertNotIn("soon", cache)
        self.assertEqual((len(cache), cache.expire(), len(cache)), (4, 1, 3))

    def test_it_stays_below_its_size_limit_by_its_policy(self):
        for policy, kept in (("least-recently-stored", 29), ("least-recently-used", 0), ("least-frequently-used", 0)):
            cache = self.cache(size_limit=20_000, cull_limit=2, eviction_policy=policy)
            for number in range(30):
                cache[number] = b"x" * 1000
                cache.get(0)
            self.assertLess(cache.volume(), 21_500)
            self.assertTrue(15 < len(cache) < 22, len(cache))
            self.assertIn(kept, cache, policy)
            self.assertEqual(0 in cache, policy != "least-recently-stored")
            cache.reset("size_limit", 5000)
            self.assertGreater(cache.cull(), 5)
            self.assertLessEqual(cache.volume(), 5000)
        cache = self.cache(size_limit=1, eviction_policy="none")
        for number in range(50):
            cache[number] = number
        self.assertEqual(len(cache), 50)

    def test_a_transaction_is_all_or_nothing_and_others_wait(self):
        cache = self.cache(timeout=0.05)
        with cache.transact():
            cache["a"] = 1
            with cache.transact():
                self.assertEqual(cache.incr("a"), 2)
            other = []

            def outside():
                other.append(cache.get("a"))
                try:
                    cache.set("b", 1)
                except lsmkv.TimeoutError as error:
                    other.append(str(error))

            thread = threading.Thread(target=outside)
            thread.start()
            thread.join()
            self.assertIsNone(other[0])
            self.assertIn("another thread", other[1])
        with self.assertRaises(RuntimeError):
            with cache.transact():
                cache["a"] = "undone"
                raise RuntimeError
        self.assertEqual((cache["a"], len(cache)), (2, 1))

    def test_threads_count_together(self):
        cache = self.cache()
        threads = [
            threading.Thread(target=lambda: [cache.incr("n") for _ in range(100)]) for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual((cache["n"], len(cache)), (400, 1))

    def test_results_of_a_function_are_kept(self):
        cache, ran = self.cache(), []

        @cache.memoize(expire=100, tag="f", ignore={"log"})
        def double(number, log=None):
            ran.append(number)
            return number * 2

        self.assertEqual([double(2), double(2), double(2, log=1), double(3)], [4, 4, 4, 6])
        self.assertEqual(ran, [2, 3])
        self.assertIn(double.__cache_key__(2), cache)
        self.assertEqual(cache.evict("f"), 2)
        with self.assertRaises(TypeError):
            cache.memoize(double)

    def test_a_pickled_cache_opens_the_same_store(self):
        cache = self.cache(size_limit=12345)
        cache["k"] = "v"
        copy = pickle.loads(pickle.dumps(cache))
        self.assertEqual((copy["k"], copy.size_limit, copy.directory), ("v", 12345, cache.directory))
        cache.close()
        copy["k"] = "w"
        copy.close()
        self.assertEqual(cache["k"], "w")

    def test_what_does_not_exist_is_named(self):
        with self.assertRaisesRegex(TypeError, "sizelimit.*size_limit"):
            lsmkv.Cache(self.directory(), sizelimit=5)
        with self.assertRaisesRegex(ValueError, "least-recently-used"):
            self.cache(eviction_policy="random")
        with self.assertRaisesRegex(ValueError, "front"):
            self.cache().push(1, side="left")
        with self.assertRaises(KeyError):
            self.cache().peekitem()


if __name__ == "__main__":
    unittest.main()
