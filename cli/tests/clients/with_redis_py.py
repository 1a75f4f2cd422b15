"""A typical application with redis-py, in both versions of the protocol: with_redis_py.py PORT."""

import sys
import threading

import redis

PORT = int(sys.argv[1])


def connect(protocol):
    return redis.Redis(port=PORT, protocol=protocol, decode_responses=True, client_name="story")


def values(db):
    assert db.set("k", "v", ex=100) and db.get("k") == "v" and 90 < db.ttl("k") <= 100
    assert db.incr("n", 5) == 5 and db.incrbyfloat("f", 1.5) == 1.5
    assert db.mset({"a": 1, "b": 2}) and db.mget("a", "b", "none") == ["1", "2", None]
    assert db.hset("h", mapping={"x": "1", "y": "2"}) == 2
    assert db.hgetall("h") == {"x": "1", "y": "2"}
    assert db.rpush("l", "a", "b", "c") == 3 and db.lrange("l", 0, -1) == ["a", "b", "c"]
    assert db.sadd("s", "a", "b") == 2 and db.smembers("s") == {"a", "b"}
    assert db.zadd("z", {"m": 1.5, "n": 2}) == 2
    assert [tuple(pair) for pair in db.zrange("z", 0, -1, withscores=True)] == [("m", 1.5), ("n", 2.0)]
    assert db.zscore("z", "m") == 1.5
    assert sorted(db.scan_iter(count=3)) == sorted(db.keys("*"))
    assert dict(db.hscan_iter("h")) == {"x": "1", "y": "2"}
    assert db.type("z") == "zset" and db.exists("k", "none") == 1


def transactions(db):
    with db.pipeline(transaction=True) as pipe:
        assert pipe.set("p", 1).incr("p").get("p").execute() == [True, 2, "2"]
    other = connect(2)
    with db.pipeline() as pipe:
        pipe.watch("p")
        other.set("p", 100)
        pipe.multi()
        pipe.incr("p")
        try:
            pipe.execute()
            raise AssertionError("the watched key changed")
        except redis.WatchError:
            pass
    assert db.transaction(lambda pipe: (pipe.multi(), pipe.incr("p")), "p") == [101]
    with db.pipeline(transaction=False) as pipe:
        for n in range(1000):
            pipe.set(f"pipe:{n}", n)
        assert all(pipe.execute())


def blocking(db):
    taken = []
    taker = threading.Thread(target=lambda: taken.append(connect(3).blpop("queue", timeout=20)))
    taker.start()
    while db.info("clients")["blocked_clients"] == 0:
        pass
    db.rpush("queue", "job")
    taker.join()
    assert [tuple(pair) for pair in taken] == [("queue", "job")], taken
    assert db.blpop("queue", timeout=0.05) is None


def server(db):
    assert db.ping() and db.client_getname() == "story"
    assert db.info()["redis_version"].startswith("7.0.")
    assert db.config_get("maxclients")["maxclients"] == "10000"
    assert db.config_set("timeout", 0)
    assert any(client["name"] == "story" for client in db.client_list())
    assert db.command_count() > 150 and db.time()[0] > 1_600_000_000
    try:
        db.hgetall("k")
        raise AssertionError("k is no hash")
    except redis.ResponseError as error:
        assert "WRONGTYPE" in str(error)


for protocol in (2, 3):
    db = connect(protocol)
    db.flushall()
    for story in (values, transactions, blocking, server):
        story(db)
