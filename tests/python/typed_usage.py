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


def cache_and_lock(db: "lsmkv.DB[bytes]") -> None:
    with lsmkv.Cache("cache", size_limit=1000) as cache:
        cache.set("k", [1, 2], expire=60, tag="t")
        count: int = cache.evict("t") + len(cache)
    with db.lock("l", timeout=1, blocking_timeout=2) as lock:
        held: bool = lock.owned()
    print(count, held)


async def asynchronous() -> None:
    import lsmkv.asyncio

    async with lsmkv.asyncio.ConnectionPool("store", sync="always") as pool:
        client = lsmkv.asyncio.Redis("store")
        print(pool.store, await client.ping())
        await client.aclose()


def adapter() -> None:
    import redis

    client = redis.Redis(connection_pool=lsmkv.ConnectionPool("store"))
    client.set("a", 1)
