"""What a type checker must accept; checked by test_package.py, never run."""

from typing import Dict, Iterator, List, Optional, Set, Tuple

import lsmkv


def commands(db: "lsmkv.DB[bytes]") -> None:
    value: Optional[bytes] = db.get("k")
    fields: Dict[bytes, bytes] = db.hgetall("h")
    members: Set[bytes] = db.smembers("s")
    elements: List[bytes] = db.lrange("l", 0, -1)
    count: int = db.sadd("s", "a", b"b", 3, 1.5)
    score: Optional[float] = db.zscore("z", "m")
    keys: Iterator[bytes] = db.iter_keys("a", reverse=True)
    print(value, fields, members, elements, count, score, keys)


def text() -> Tuple[Optional[str], List[str]]:
    with lsmkv.open("store", decode_responses=True, sync="always") as db:
        return db.get("k"), db.keys("*")


def handles(db: "lsmkv.DB[bytes]") -> int:
    with db.snapshot() as snapshot, db.transaction() as transaction:
        transaction.set("k", snapshot.get("k") or b"")
    with db.pipeline() as pipe:
        pipe.set("a", 1).incr("a").execute()
        pipe.watch("a")
        current = int(pipe.get("a"))
        pipe.multi()
        pipe.set("a", current + 1)
    with db.batch() as batch:
        batch.set("a", 1).set("b", 2)
    return db.transact(lambda t: t.incr("a"))


def adapter() -> None:
    import redis

    client = redis.Redis(connection_pool=lsmkv.ConnectionPool("store"))
    client.set("a", 1)
