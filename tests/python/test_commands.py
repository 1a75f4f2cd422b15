"""Commands: redis-py's arguments and results. Expected values are Redis's."""

import datetime
import unittest

import lsmkv
from places import PlaceTest


class Commands(PlaceTest):
    def test_strings(self):
        db = self.db
        self.assertIs(db.set("k", "v"), True)
        self.assertIsNone(db.set("k", "w", nx=True))
        self.assertIs(db.set("k", "w", xx=True), True)
        self.assertEqual(db.set("k", "x", get=True), b"w")
        self.assertIsNone(db.set("new", "x", get=True))
        self.assertEqual(db.append("k", "yz"), 3)
        self.assertEqual(db.getrange("k", 1, 2), b"yz")
        self.assertEqual(db.substr("k", 0), b"xyz")
        self.assertEqual(db.strlen("k"), 3)
        self.assertEqual(db.setrange("k", 1, "12"), 3)
        self.assertEqual(db.getset("k", "5"), b"x12")
        self.assertEqual(db.incr("k"), 6)
        self.assertEqual(db.incr("k", 10), 16)
        self.assertEqual(db.incrby("k", -6), 10)
        self.assertEqual(db.decr("k"), 9)
        self.assertEqual(db.decrby("k", 4), 5)
        self.assertEqual(db.incrbyfloat("k", 0.5), 5.5)
        self.assertEqual(db.incrbyfloat("k", 2), 7.5)
        self.assertEqual(db.getdel("k"), b"7.5")
        self.assertIsNone(db.getdel("k"))
        self.assertIs(db.mset({"a": 1, "b": 2.5}), True)
        self.assertIs(db.msetnx({"b": 1, "c": 1}), False)
        self.assertEqual(db.mget("a", "b", "c"), [b"1", b"2.5", None])
        self.assertEqual(db.mget(["a"], "c"), [b"1", None])
        self.assertIs(db.setnx("a", 9), False)
        self.assertIs(db.setnx("d", 9), True)
        db.mset({"x": "ohmytext", "y": "mynewtext"})
        self.assertEqual(db.lcs("x", "y"), b"mytext")
        self.assertEqual(db.lcs("x", "y", len=True), 6)
        self.assertEqual(
            db.lcs("x", "y", idx=True, minmatchlen=4, withmatchlen=True),
            [b"matches", [[[4, 7], [5, 8], 4]], b"len", 6],
        )

    def test_expiry(self):
        db = self.db
        minute, now = datetime.timedelta(minutes=1), datetime.datetime.now()
        for given in ({"ex": 60}, {"px": 60000}, {"ex": minute}, {"px": minute}):
            db.set("k", "v", **given)
            self.assertIn(db.ttl("k"), (59, 60), given)
        for given in ({"exat": now + minute}, {"pxat": now + minute}):
            db.set("k", "v", **given)
            self.assertIn(db.ttl("k"), (58, 59, 60), given)
        db.set("k", "w", keepttl=True)
        self.assertGreater(db.pttl("k"), 50000)
        db.set("k", "w")
        self.assertEqual((db.ttl("k"), db.ttl("none"), db.pttl("k")), (-1, -2, -1))
        self.assertIs(db.setex("k", minute, "v"), True)
        self.assertIs(db.psetex("k", 60000, "v"), True)
        self.assertEqual(db.getex("k", persist=True), b"v")
        self.assertEqual(db.ttl("k"), -1)
        self.assertEqual(db.getex("k", px=minute), b"v")
        self.assertIs(db.persist("k"), True)
        self.assertIs(db.persist("k"), False)
        self.assertIs(db.expire("k", 100, xx=True), False)
        self.assertIs(db.expire("k", 100, nx=True), True)
        self.assertIs(db.pexpire("k", 200000, gt=True), True)
        self.assertIs(db.expireat("k", 2000000000, lt=True), False)
        self.assertIs(db.pexpireat("k", 2000000000000), True)
        self.assertEqual((db.expiretime("k"), db.pexpiretime("k")), (2000000000, 2000000000000))
        with self.assertRaises(lsmkv.DataError):
            db.set("k", "v", ex=1, px=1)

    def test_bits(self):
        db = self.db
        self.assertEqual(db.setbit("b", 7, 1), 0)
        self.assertEqual(db.setbit("b", 7, True), 1)
        self.assertEqual((db.getbit("b", 7), db.getbit("b", 8)), (1, 0))
        self.assertEqual(db.bitcount("b"), 1)
        self.assertEqual(db.bitcount("b", 0, 6, "BIT"), 0)
        self.assertEqual((db.bitpos("b", 1), db.bitpos("b", 0, 0, -1)), (7, 0))
        self.assertEqual(db.bitop("NOT", "n", "b"), 1)
        self.assertEqual(db.get("n"), b"\xfe")
        operations = db.bitfield("f").set("u8", 0, 255).incrby("u8", 0, 10, "FAIL").get("u8", 0)
        self.assertEqual(operations.execute(), [0, None, 255])
        self.assertEqual(db.bitfield_ro("f", "u4", 0, [("u4", "#1")]), [15, 15])

    def test_hashes(self):
        db = self.db
        self.assertEqual(db.hset("h", "a", 1), 1)
        self.assertEqual(db.hset("h", mapping={"a": 2, "b": 3}), 1)
        self.assertEqual(db.hset("h", items=["c", 4]), 1)
        self.assertEqual(db.hgetall("h"), {b"a": b"2", b"b": b"3", b"c": b"4"})
        self.assertEqual(db.hgetall("none"), {})
        self.assertEqual(db.hget("h", "a"), b"2")
        self.assertIsNone(db.hget("h", "z"))
        self.assertEqual(db.hmget("h", "a", "z"), [b"2", None])
        self.assertEqual(db.hmget("h", ["a", "b"]), [b"2", b"3"])
        self.assertEqual((db.hlen("h"), db.hstrlen("h", "a")), (3, 1))
        self.assertIs(db.hexists("h", "a"), True)
        self.assertEqual(db.hsetnx("h", "a", 9), 0)
        self.assertEqual((db.hincrby("h", "a", 5), db.hincrbyfloat("h", "a", 0.5)), (7, 7.5))
        self.assertEqual(db.hkeys("h"), [b"a", b"b", b"c"])
        self.assertEqual(db.hvals("h"), [b"7.5", b"3", b"4"])
        self.assertEqual(db.hdel("h", "a", "z"), 1)
        self.assertEqual(db.hdel("h", "b"), 1)
        self.assertEqual(db.hgetdel("h", "c", "z"), [b"4", None])
        self.assertEqual(db.exists("h"), 0)
        self.assertIs(db.hmset("h", {"x": 1}), True)
        self.assertEqual(db.hrandfield("h"), b"x")
        self.assertEqual(db.hrandfield("h", 2, withvalues=True), [b"x", b"1"])
        for wrong in ({}, {"key": "a"}, {"mapping": {}}):
            with self.assertRaises(lsmkv.DataError):
                db.hset("h", **wrong)

    def test_lists(self):
        db = self.db
        self.assertEqual(db.rpush("l", "a", "b", "c"), 3)
        self.assertEqual(db.lpush("l", "z"), 4)
        self.assertEqual((db.lpushx("none", 1), db.rpushx("l", "d")), (0, 5))
        self.assertEqual(db.lrange("l", 0, -1), [b"z", b"a", b"b", b"c", b"d"])
        self.assertEqual((db.llen("l"), db.lindex("l", -1)), (5, b"d"))
        self.assertEqual(db.linsert("l", "BEFORE", "b", "B"), 6)
        self.assertEqual(db.lpos("l", "b"), 3)
        self.assertEqual(db.lpos("l", "b", count=0), [3])
        self.assertIsNone(db.lpos("l", "nope"))
        self.assertIs(db.lset("l", 0, "y"), True)
        self.assertEqual(db.lrem("l", 1, "B"), 1)
        self.assertIs(db.ltrim("l", 0, 3), True)
        self.assertEqual(db.lpop("l"), b"y")
        self.assertEqual(db.rpop("l", 2), [b"c", b"b"])
        self.assertEqual(db.rpoplpush("l", "m"), b"a")
        self.assertIsNone(db.lpop("l"))
        self.assertEqual(db.lmove("m", "l"), b"a")
        self.assertEqual(db.lmpop(2, "none", "l", direction="LEFT", count=5), [b"l", [b"a"]])
        self.assertIsNone(db.lmpop(1, "none", direction="LEFT"))

    def test_sets(self):
        db = self.db
        self.assertEqual(db.sadd("s", "a", "b", "c"), 3)
        self.assertEqual(db.sadd("t", "c"), 1)
        self.assertEqual(db.smembers("s"), {b"a", b"b", b"c"})
        self.assertEqual((db.scard("s"), db.sismember("s", "a"), db.sismember("s", "z")), (3, 1, 0))
        self.assertEqual(db.smismember("s", ["a", "z"]), [1, 0])
        self.assertEqual(db.sdiff("s", "t"), {b"a", b"b"})
        self.assertEqual(db.sinter(["s", "t"]), {b"c"})
        self.assertEqual(db.sunion(["s"], "t"), {b"a", b"b", b"c"})
        self.assertEqual(db.sintercard(2, ["s", "t"]), 1)
        self.assertEqual(db.sdiffstore("d", "s", "t"), 2)
        self.assertEqual((db.sinterstore("d", ["s", "t"]), db.sunionstore("d", "s", "t")), (1, 3))
        self.assertIs(db.smove("s", "u", "a"), True)
        self.assertEqual(db.srem("s", "b", "z"), 1)
        self.assertEqual((db.srandmember("s"), db.srandmember("s", 5)), (b"c", [b"c"]))
        self.assertEqual((db.spop("s"), db.spop("s"), db.spop("u", 3)), (b"c", None, [b"a"]))

    def test_sorted_sets(self):
        db = self.db
        self.assertEqual(db.zadd("z", {"a": 1, "b": 2, "c": 3}), 3)
        self.assertEqual(db.zadd("z", {"a": 5}, ch=True, gt=True), 1)
        self.assertEqual(db.zadd("z", {"a": -4}, incr=True), 1.0)
        self.assertIsNone(db.zadd("z", {"a": 1}, incr=True, nx=True))
        self.assertEqual(db.zrange("z", 0, -1), [b"a", b"b", b"c"])
        self.assertEqual(db.zrange("z", 0, 0, withscores=True), [(b"a", 1.0)])
        self.assertEqual(db.zrange("z", 0, 0, True, True, int), [(b"c", 3)])
        self.assertEqual(db.zrange("z", "(1", "+inf", byscore=True, offset=1, num=1), [b"c"])
        self.assertEqual(db.zrevrange("z", 0, 0, withscores=True), [(b"c", 3.0)])
        self.assertEqual(db.zrangebyscore("z", 1, 2, 0, 1), [b"a"])
        self.assertEqual(db.zrevrangebyscore("z", "inf", 2, withscores=True)[0], (b"c", 3.0))
        self.assertEqual((db.zscore("z", "a"), db.zscore("z", "n")), (1.0, None))
        self.assertEqual(db.zmscore("z", ["a", "n"]), [1.0, None])
        self.assertEqual((db.zrank("z", "b"), db.zrevrank("z", "a"), db.zrank("z", "n")), (1, 2, None))
        self.assertEqual((db.zcard("z"), db.zcount("z", 2, "inf")), (3, 2))
        self.assertEqual(db.zincrby("z", 1.5, "a"), 2.5)
        db.zadd("y", {"b": 10, "x": 1})
        self.assertEqual(db.zdiff(["z", "y"]), [b"a", b"c"])
        self.assertEqual(db.zdiff(["z", "y"], withscores=True), [b"a", b"2.5", b"c", b"3"])
        self.assertEqual(db.zinter({"z": 1, "y": 2}, withscores=True), [(b"b", 22.0)])
        self.assertEqual(db.zunion(["z", "y"], "max", True)[-1], (b"b", 10.0))
        self.assertEqual(db.zintercard(2, ["z", "y"]), 1)
        self.assertEqual(db.zdiffstore("d", ["z", "y"]), 2)
        self.assertEqual((db.zinterstore("d", ["z", "y"]), db.zunionstore("d", ["z", "y"])), (1, 4))
        self.assertEqual(db.zrangestore("d", "z", 0, 1), 2)
        self.assertEqual(db.zmpop(2, ["n", "z"], min=True, count=2), [b"z", [[b"b", b"2"], [b"a", b"2.5"]]])
        self.assertEqual((db.zpopmin("z"), db.zpopmax("z", 2)), ([(b"c", 3.0)], []))
        db.zadd("l", {"a": 0, "b": 0, "c": 0})
        self.assertEqual(db.zrangebylex("l", "[b", "+"), [b"b", b"c"])
        self.assertEqual(db.zrevrangebylex("l", "(c", "-", 0, 1), [b"b"])
        self.assertEqual((db.zlexcount("l", "-", "+"), db.zremrangebylex("l", "[a", "[a")), (3, 1))
        self.assertEqual((db.zremrangebyrank("l", 0, 0), db.zremrangebyscore("l", 0, 0)), (1, 1))
        db.zadd("r", {"m": 1})
        self.assertEqual((db.zrandmember("r"), db.zrandmember("r", 1, True)), (b"m", [b"m", b"1"]))
        self.assertEqual(db.zrem("r", "m", "n"), 1)
        for wrong in ({"mapping": {}}, {"mapping": {"a": 1}, "nx": True, "xx": True}):
            with self.assertRaises(lsmkv.DataError):
                db.zadd("z", **wrong)

    def test_keys(self):
        db = self.db
        db.mset({"a": 1, "b": 2})
        db.lpush("l", 3, 1, 2)
        self.assertEqual(sorted(db.keys()), [b"a", b"b", b"l"])
        self.assertEqual((db.keys("l*"), db.dbsize()), ([b"l"], 3))
        self.assertEqual((db.exists("a", "a", "z"), db.touch("a", "z"), db.unlink("z")), (2, 1, 0))
        self.assertIs(db.copy("a", "b"), False)
        self.assertIs(db.copy("a", "b", replace=True), True)
        self.assertIs(db.rename("b", "c"), True)
        self.assertIs(db.renamenx("c", "a"), False)
        self.assertEqual((db.type("l"), db.type("none")), (b"list", b"none"))
        self.assertEqual(db.object("ENCODING", "a"), b"int")
        self.assertIs(db.move("c", 1), True)
        self.assertEqual(db.select(1).get("c"), b"1")
        self.assertIs(db.swapdb(0, 1), True)
        self.assertEqual(db.randomkey(), b"c")
        self.assertIs(db.flushdb(), True)
        db.swapdb(0, 1)
        self.assertEqual(db.sort("l"), [b"1", b"2", b"3"])
        self.assertEqual(db.sort("l", 0, 1, desc=True), [b"3"])
        self.assertEqual(db.sort("l", get=["#", "none*"], groups=True)[0], (b"1", None))
        self.assertEqual(db.sort("l", store="sorted"), 3)
        self.assertEqual(db.sort_ro("sorted", alpha=True), [b"1", b"2", b"3"])
        self.assertIs(db.flushall(), True)
        self.assertEqual((db.dbsize(), db.randomkey()), (0, None))

    def test_scans_give_everything(self):
        db = self.db
        names = {b"key:%d" % number for number in range(300)}
        db.mset(dict.fromkeys(names, 1))
        self.assertEqual(set(db.scan_iter(count=7)), names)
        self.assertEqual(set(db.scan_iter("key:1?", _type="string")), {b"key:1%d" % n for n in range(10)})
        cursor, found = db.scan(count=5)
        self.assertIsInstance(cursor, int)
        self.assertTrue(found)
        db.hset("h", mapping={name: 1 for name in names})
        db.sadd("s", *names)
        db.zadd("z", {name: 1.5 for name in names})
        self.assertEqual(dict(db.hscan_iter("h")), {name: b"1" for name in names})
        self.assertEqual(set(db.sscan_iter("s", count=10)), names)
        self.assertEqual(dict(db.zscan_iter("z")), {name: 1.5 for name in names})

    def test_keys_in_order(self):
        db = self.db
        db.mset({"key:%04d" % number: number for number in range(2500)})
        db.lpush("list", "x")
        expected = [b"key:%04d" % number for number in range(2500)]
        self.assertEqual(list(db.iter_keys("key:", "key;")), expected)
        self.assertEqual(list(db.iter_keys("key:", "key;", reverse=True)), expected[::-1])
        self.assertEqual(list(db), expected + [b"list"])
        self.assertEqual(list(db.iter_items("key:2499")), [(b"key:2499", "string", b"2499"), (b"list", "list", None)])
        walk = db.iter_keys(fill_cache=False)
        db.flushdb()
        self.assertEqual(len(list(walk)), 2501)
        self.assertEqual(list(db), [])

    def test_text_is_decoded_if_wanted(self):
        with lsmkv.open(decode_responses=True) as db:
            db.set("k", "é")
            db.hset("h", mapping={"f": "v"})
            db.zadd("z", {"m": 1})
            self.assertEqual((db.get("k"), db.getrange("k", 0, -1)), ("é", "é"))
            self.assertEqual(db.hgetall("h"), {"f": "v"})
            self.assertEqual(db.zrange("z", 0, -1, withscores=True), [("m", 1.0)])
            self.assertEqual(db.zdiff(["z"], withscores=True), ["m", "1"])
            self.assertEqual((db.type("k"), db.keys("h")), ("string", ["h"]))
            self.assertIs(db.mset({"a": 1}), True)
            self.assertEqual(db.pipeline().get("k").execute(), ["é"])
            self.assertEqual(list(db.iter_keys("h", "i")), ["h"])
            db.set("long", "x" * 100000)
            self.assertEqual(db.get("long"), "x" * 100000)

    def test_refused_commands_raise_redis_errors(self):
        db = self.db
        db.set("k", "v")
        cases = [
            (lambda: db.lpush("k", 1), lsmkv.WrongTypeError, "WRONGTYPE Operation against"),
            (lambda: db.lpush("k", 1, 2), lsmkv.WrongTypeError, "WRONGTYPE Operation against"),
            (lambda: db.incr("k"), lsmkv.NotIntegerError, "^value is not an integer"),
            (lambda: db.incrbyfloat("k", 1.5), lsmkv.NotFloatError, "not a valid float"),
            (lambda: db.incr("n", 2**63), lsmkv.NotIntegerError, "^value is not an integer"),
            (lambda: db.rename("no", "where"), lsmkv.NoSuchKeyError, "^no such key"),
            (lambda: db.lset("no", 0, 1), lsmkv.NoSuchKeyError, "^no such key"),
            (lambda: db.setrange("k", -1, "x"), lsmkv.OutOfRangeError, "offset is out of range"),
            (lambda: db.delete(), lsmkv.ResponseError, "wrong number of arguments"),
            (lambda: db.mget([]), lsmkv.ResponseError, "wrong number of arguments"),
            (lambda: db.execute_command("NOSUCH"), lsmkv.ResponseError, "unknown command"),
            (lambda: db.execute_command("SET", "k", "v", "BAD"), lsmkv.SyntaxError, "syntax error"),
        ]
        for use, kind, text in cases:
            with self.assertRaisesRegex(kind, text) as caught:
                use()
            self.assertIsInstance(caught.exception, lsmkv.ResponseError)
        db.set("n", 2**63 - 1)
        with self.assertRaises(lsmkv.OverflowError):
            db.incr("n")
        self.assertEqual(db.get("n"), b"9223372036854775807")

    def test_numbers_may_be_text_as_in_redis_py(self):
        db = self.db
        db.rpush("l", *"abc")
        self.assertEqual(db.lrange("l", "0", "1"), [b"a", b"b"])
        self.assertEqual(db.incrby("n", "5"), 5)
        self.assertEqual(db.execute_command("object encoding", "n"), b"int")


if __name__ == "__main__":
    unittest.main()
