"""Scripts and functions: what they do, what they return, and the errors that they raise."""

import hashlib
import unittest

import lsmkv
from places import PLACE, SHARED, PlaceTest, opened

ADD = "return redis.call('INCRBY', KEYS[1], ARGV[1])"
GET = "return redis.call('GET', KEYS[1])"
LIBRARY = """#!lua name=counters
redis.register_function('add', function(keys, args)
    return redis.call('INCRBY', keys[1], args[1])
end)
redis.register_function{
    function_name='look', flags={'no-writes'},
    callback=function(keys) return redis.call('GET', keys[1]) end
}
"""
# A server has Redis's way to fail: what a script wrote before stays.
KEEPS_WRITES = PLACE is not None and not SHARED
REFUSED = "redis.call('SET', KEYS[1], 'half') return redis.call('LPUSH', KEYS[1], 'x')"


def digest(script):
    return hashlib.sha1(script.encode()).hexdigest()


class Scripts(PlaceTest):
    def setUp(self):
        super().setUp()
        if PLACE is not None:
            self.db.function_flush()
            self.db.script_flush()

    def test_a_script_writes_and_returns_what_redis_py_returns(self):
        self.assertEqual(self.db.eval(ADD, 1, "n", 5), 5)
        self.assertEqual(self.db.eval(ADD.encode(), 1, "n", 5), 10)
        self.assertEqual(self.db.get("n"), b"10")
        self.assertEqual(self.db.eval(GET, 1, "n"), b"10")
        self.assertIsNone(self.db.eval(GET, 1, "none"))
        for script, expected in (
            ("return {1, 'a', {2, false}, 3.9}", [1, b"a", [2, None], 3]),
            ("return redis.status_reply('FINE')", b"FINE"),
            ("return true", 1),
            ("return {}", []),
            ("return 'a\\0\\255'", b"a\0\xff"),
        ):
            self.assertEqual(self.db.eval(script, 0), expected, script)

    def test_texts_are_str_where_replies_are_decoded(self):
        with lsmkv.open(decode_responses=True) as db:
            self.assertEqual(db.eval("return {KEYS[1], ARGV[1]}", 1, "k\u00fc", b"v"), ["k\u00fc", "v"])
            self.assertEqual(db.script_load(GET), digest(GET))
            self.assertEqual(db.register_script(ADD)(["n"], [2]), 2)
            self.assertEqual(db.function_load(LIBRARY), "counters")

    def test_keys_and_args_may_be_of_every_type_that_can_be_stored(self):
        given = [b"b\0\xff", bytearray(b"ba"), memoryview(b"mv"), "t\u00e9xt", 7, -2, 2.5]
        expected = [b"b\0\xff", b"ba", b"mv", "t\u00e9xt".encode(), b"7", b"-2", b"2.5"]
        both = "local r = {} for _, k in ipairs(KEYS) do redis.call('SET', k, 'v') r[#r + 1] = k end " \
            "for _, a in ipairs(ARGV) do r[#r + 1] = a end return r"
        count = len(given)
        self.assertEqual(self.db.eval(both, count, *given, *given), expected * 2)
        self.assertEqual(self.db.evalsha(digest(both), count, *given), expected)
        self.assertEqual(self.db.register_script(both)(keys=given, args=given), expected * 2)
        self.assertEqual(sorted(self.db.keys("*")), sorted(expected))
        for wrong in (None, True, [1], {}):
            for call in (
                lambda: self.db.eval(both, 1, wrong),
                lambda: self.db.evalsha(digest(both), 0, wrong),
                lambda: self.db.register_script(both)(keys=[wrong]),
                lambda: self.db.register_script(both)(args=[wrong]),
                lambda: self.db.fcall("add", 1, wrong),
            ):
                with self.assertRaises(lsmkv.DataError):
                    call()

    def test_errors_have_the_types_of_other_commands_and_nothing_remains(self):
        for script, numkeys, kind, text in (
            (REFUSED, 1, lsmkv.WrongTypeError, "wrong kind of value"),
            ("redis.call('SET', KEYS[1], 'half') error('mine')", 1, lsmkv.ResponseError, "mine"),
            ("return redis.error_reply('MINE own')", 1, lsmkv.ResponseError, "^MINE own$"),
            ("return redis.call('INCR', KEYS[1])", 1, lsmkv.NotIntegerError, "not an integer"),
            ("return redis.call('NOSUCH')", 0, lsmkv.ResponseError, "Unknown Redis command"),
            ("return (", 0, lsmkv.ResponseError, "Error compiling script"),
            ("x = 1", 0, lsmkv.ResponseError, "readonly table"),
            ("return 1", 2, lsmkv.ResponseError, "Number of keys can't be greater"),
            ("return 1", -1, lsmkv.ResponseError, "Number of keys can't be negative"),
            ("return 1", "one", lsmkv.NotIntegerError, "not an integer"),
        ):
            self.db.set("k", "v")
            with self.assertRaisesRegex(kind, text, msg=script):
                self.db.eval(script, numkeys, "k")
            stays = KEEPS_WRITES and "'half'" in script
            self.assertEqual(self.db.get("k"), b"half" if stays else b"v", script)
        # What a script catches is a value of it.
        caught = "return redis.pcall('LPUSH', KEYS[1], 'x')['err']"
        self.assertTrue(self.db.eval(caught, 1, "k").startswith(b"WRONGTYPE"))

    def test_a_script_is_known_by_its_digest_until_it_is_deleted(self):
        sha = self.db.script_load(ADD)
        self.assertEqual(sha, digest(ADD).encode())
        self.assertEqual(self.db.script_exists(sha, "0" * 40), [True, False])
        self.assertEqual(self.db.evalsha(sha, 1, "n", 2), 2)
        self.assertEqual(self.db.evalsha(sha.decode().upper(), 1, "n", 2), 4)
        self.assertIs(self.db.script_flush(), True)
        with self.assertRaisesRegex(lsmkv.NoScriptError, "No matching script"):
            self.db.evalsha(sha, 1, "n", 2)
        self.assertEqual((self.db.get("n"), self.db.script_exists(sha)), (b"4", [False]))
        self.assertEqual(self.db.script_load(ADD.encode()), sha)
        self.assertEqual(self.db.evalsha(sha, 1, "n", 2), 6)
        with self.assertRaisesRegex(lsmkv.ResponseError, "Error compiling script"):
            self.db.script_load("return (")

    def test_a_registered_script_is_loaded_again_after_it_was_deleted(self):
        add = self.db.register_script(ADD)
        self.assertEqual(add.sha, digest(ADD))
        for expected in (3, 6):
            self.assertEqual(add(["n"], [3]), expected)
        self.assertEqual(self.db.script_exists(add.sha), [True])
        self.db.script_flush("ASYNC")
        self.assertEqual(add(keys=["n"], args=[3]), 9)
        self.assertEqual(self.db.script_exists(add.sha), [True])
        self.assertEqual(self.db.register_script(b"return 1")(), 1)
        # An error of the script itself is no reason to run it again.
        count = self.db.register_script("redis.call('INCR', KEYS[1]) return redis.error_reply('NO more')")
        with self.assertRaisesRegex(lsmkv.ResponseError, "^NO more$"):
            count(["runs"])
        self.assertEqual(self.db.get("runs"), b"1")

    def test_a_registered_script_is_one_command_of_a_pipeline_or_batch(self):
        # The first call on a pipeline queued SCRIPT LOAD too, whose reply was one result too many; a
        # batch refused it.
        add = self.db.register_script(ADD)
        for transaction in (True, False):
            with self.db.pipeline(transaction) as pipe:
                self.assertIs(add(["n"], [1], client=pipe), pipe)
                pipe.get("n")
                add(["n"], [1], pipe)
                self.db.script_flush()
                results = pipe.execute()
                self.assertEqual((len(results), results[0] + 1), (3, results[2]))
        with self.db.batch() as batch:
            add(["n"], [10], batch)
            self.assertEqual(self.db.get("n"), b"4")
        self.assertEqual(self.db.get("n"), b"14")

    def test_a_script_in_a_transaction_is_part_of_it(self):
        add = self.db.register_script(ADD)
        with self.db.transaction() as t:
            self.assertEqual((t.eval(ADD, 1, "n", 1), add(["n"], [1], client=t)), (1, 2))
            self.assertEqual((t.get("n"), self.db.get("n")), (b"2", None))
            with self.assertRaises(lsmkv.WrongTypeError):
                t.eval(REFUSED, 1, "half")
            self.assertIsNone(t.get("half"))
        self.assertEqual(self.db.get("n"), b"2")
        t = self.db.begin()
        self.assertEqual(add(["n"], [5], client=t), 7)
        t.rollback()
        t.close()
        self.assertEqual(self.db.get("n"), b"2")
        t = self.db.begin()
        add(["n"], [5], client=t)
        self.db.incr("n")
        with self.assertRaises(lsmkv.WatchError):
            t.commit()
        t.close()
        self.assertEqual(self.db.get("n"), b"3")

    def test_a_script_that_only_reads_sees_the_moment_of_a_snapshot(self):
        self.db.set("k", "then")
        with self.db.snapshot() as snapshot:
            self.db.set("k", "now")
            sha = self.db.script_load(GET)
            self.assertEqual(snapshot.eval_ro(GET, 1, "k"), b"then")
            self.assertEqual(snapshot.evalsha_ro(sha, 1, "k"), b"then")
            self.assertEqual(self.db.evalsha_ro(sha, 1, "k"), b"now")
            for write in (
                lambda: snapshot.eval(ADD, 1, "n", 1),
                lambda: snapshot.evalsha(sha, 1, "k"),
                lambda: self.db.register_script(ADD)(["n"], [1], client=snapshot),
            ):
                with self.assertRaises(lsmkv.ReadOnlyError):
                    write()
        self.assertIsNone(self.db.get("n"))

    def test_a_script_that_only_reads_may_not_write(self):
        self.db.set("k", "v")
        self.assertEqual(self.db.eval_ro(GET, 1, "k"), b"v")
        self.assertEqual(self.db.evalsha_ro(digest(GET), 1, "k"), b"v")
        with self.assertRaisesRegex(lsmkv.ResponseError, "Write commands are not allowed"):
            self.db.eval_ro(ADD, 1, "n", 1)
        self.assertIsNone(self.db.get("n"))

    def test_functions_are_stored_called_and_replaced(self):
        self.assertEqual(self.db.function_load(LIBRARY), b"counters")
        self.assertEqual(self.db.fcall("add", 1, "n", 4), 4)
        self.assertEqual(self.db.fcall(b"add", 1, b"n", bytearray(b"2")), 6)
        self.assertEqual(self.db.fcall_ro("look", 1, "n"), b"6")
        with self.assertRaisesRegex(lsmkv.ResponseError, "Can not execute a script with write flag"):
            self.db.fcall_ro("add", 1, "n", 1)
        with self.assertRaises(lsmkv.NotIntegerError):
            self.db.fcall("add", 1, "n", "x")
        with self.assertRaisesRegex(lsmkv.ResponseError, "Function not found"):
            self.db.fcall("nosuch", 0)
        with self.assertRaisesRegex(lsmkv.ResponseError, "already exists"):
            self.db.function_load(LIBRARY)
        with self.assertRaisesRegex(lsmkv.ResponseError, "Missing library metadata"):
            self.db.function_load("return 1")
        changed = LIBRARY.replace("'INCRBY'", "'DECRBY'").encode()
        self.assertEqual(self.db.function_load(changed, replace=True), b"counters")
        self.assertEqual(self.db.fcall("add", 1, "n", 1), 5)
        [listed] = self.db.function_list("count*")
        self.assertEqual(listed[:2], [b"library_name", b"counters"])
        self.assertEqual(self.db.function_list("none"), [])

    def test_functions_run_in_transactions_and_on_snapshots(self):
        self.db.function_load(LIBRARY)
        self.db.set("n", 6)
        with self.db.transaction() as t:
            self.assertEqual((t.fcall("add", 1, "n", 1), self.db.get("n")), (7, b"6"))
        with self.db.snapshot() as snapshot:
            self.assertEqual(snapshot.fcall_ro("look", 1, "n"), b"7")

    def test_functions_survive_a_reopen_and_scripts_do_not(self):
        self.db.function_load(LIBRARY)
        sha = self.db.script_load(GET)
        self.db.close()
        with opened(self.path) as db:
            self.assertEqual(db.fcall("add", 1, "n", 1), 1)
            # Elsewhere the store was open meanwhile.
            if PLACE is None:
                with self.assertRaises(lsmkv.NoScriptError):
                    db.evalsha(sha, 1, "n")
            dump = db.function_dump()
            self.assertIs(db.function_delete("counters"), True)
            with self.assertRaises(lsmkv.ResponseError):
                db.fcall("add", 1, "n", 1)
            self.assertIs(db.function_restore(dump), True)
            self.assertEqual(db.fcall("add", 1, "n", 1), 2)
            self.assertIs(db.function_flush(), True)
            self.assertEqual(db.function_list(), [])


if __name__ == "__main__":
    unittest.main()
