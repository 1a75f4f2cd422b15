"""The small program that C and C++ have too. Run: python3 quickstart.py [DIRECTORY]"""

import sys

import lsmkv


def strings_and_hashes(db: "lsmkv.DB[str]") -> None:
    db.set("greeting", "hello", ex=3600)
    print("  a string:      %s, expires in %d s" % (db.get("greeting"), db.ttl("greeting")))

    db.hset("user:1", mapping={"name": "alice", "visits": 1})
    db.hincrby("user:1", "visits")
    print("  a hash:        name %s, visits %s" % tuple(db.hmget("user:1", ["name", "visits"])))


def lists_and_leaderboards(db: "lsmkv.DB[str]") -> None:
    db.delete("queue")
    db.rpush("queue", "first", "second", "third")
    taken = db.lpop("queue")
    print("  a list:        took %s, left %s" % (taken, " ".join(db.lrange("queue", 0, -1))))

    db.zadd("board", {"alice": 12, "bob": 17.5})
    board = db.zrange("board", 0, -1, desc=True, withscores=True)
    print("  a leaderboard: %s" % " ".join("%s %g" % entry for entry in board))


def transactions_and_snapshots(db: "lsmkv.DB[str]") -> None:
    def transfer(txn: "lsmkv.Transaction[str]") -> None:
        txn.decrby("savings", 5)
        txn.incrby("checking", 5)

    db.mset({"savings": 100, "checking": 0})
    with db.snapshot() as before:
        db.transact(transfer)  # runs again if another writer was faster
        print("  a transaction: savings %s, checking %s" % tuple(db.mget("savings", "checking")))
        print("  a snapshot:    savings were %s" % before.get("savings"))


def main(path: str) -> None:
    print("lsmkv %s from Python, store in %s" % (lsmkv.version(), path))
    with lsmkv.open(path, decode_responses=True, sync="always") as db:
        strings_and_hashes(db)
        lists_and_leaderboards(db)
        transactions_and_snapshots(db)
    with lsmkv.open(path, decode_responses=True) as db:
        print("  opened again:  %s" % " ".join(db.iter_keys()))


main(sys.argv[1] if len(sys.argv) > 1 else "store")
