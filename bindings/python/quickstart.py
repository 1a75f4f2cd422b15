"""A tour of the Python binding. Run: python3 quickstart.py [DIRECTORY]"""

import sys

import lsmkv

path = sys.argv[1] if len(sys.argv) > 1 else None


def main() -> None:
    print("lsmkv %s from Python, store in %s" % (lsmkv.version(), path or ":memory:"))
    with lsmkv.open(path or ":memory:", sync="always") as db:
        db.set("greeting", "hello from Python")
        print("  set greeting")
        print("  get greeting = %s" % db.get("greeting").decode())
        print("  delete greeting: %d key removed" % db.delete("greeting"))
        print("  get greeting: %s" % db.get("greeting"))
        db["visitor"] = "Python"
    if path:
        with lsmkv.open(path) as db:
            print("  after reopening: visitor = %s" % db["visitor"].decode())


main()
