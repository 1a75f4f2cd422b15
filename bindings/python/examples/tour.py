"""A tour of the Python binding. Run: python3 tour.py [DIRECTORY]"""

import sys

import lsmkv

path = sys.argv[1] if len(sys.argv) > 1 else ":memory:"


def main() -> None:
    print("lsmkv %s from Python, store in %s" % (lsmkv.version(), path))
    with lsmkv.open(path, decode_responses=True, sync="always") as db:
        db.set("greeting", "hello from Python", ex=3600)
        print("  get greeting = %s, expires in %d s" % (db.get("greeting"), db.ttl("greeting")))
        db.hset("user:1", mapping={"name": "Ada", "visits": 1})
        db.hincrby("user:1", "visits")
        print("  hgetall user:1 = %s" % db.hgetall("user:1"))
        db.delete("queue")
        db.rpush("queue", "first", "second")
        print("  lpop queue = %s" % db.lpop("queue"))
        db.zadd("scores", {"ada": 12.5, "grace": 11})
        print("  zrange scores = %s" % db.zrange("scores", 0, -1, withscores=True))
        with db.transaction() as t:
            t.hset("user:1", "seen", "yes")
            t.lpush("queue", "zeroth")
        print("  after a transaction: lrange queue = %s" % db.lrange("queue", 0, -1))
        print("  a pipeline: %s" % db.pipeline().incr("runs").get("greeting").execute())
    if path != ":memory:":
        with lsmkv.open(path, decode_responses=True) as db:
            print("  after reopening: %s" % ", ".join(db.iter_keys()))


main()
