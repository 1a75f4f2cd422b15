"""dogpile.cache: regions, and one computation for many who ask."""

import threading
import time

from dogpile.cache import make_region

from scenario import equal, main


def region(place, **arguments):
    if place.in_process:
        arguments["connection_pool"] = place.pool()
    else:
        arguments["url"] = place.url
    return make_region().configure(
        "dogpile.cache.redis", expiration_time=60, arguments={"redis_expiration_time": 120, **arguments}
    )


def cached(place):
    """Values are computed once, refreshed and deleted."""
    cache = region(place)
    calls = []

    @cache.cache_on_arguments()
    def square(n):
        calls.append(n)
        return n * n

    equal([square(3), square(3), square(4)], [9, 9, 16])
    equal(calls, [3, 4])
    square.invalidate(3)
    equal(square(3), 9)
    equal(calls, [3, 4, 3])
    cache.set_multi({"a": 1, "b": 2})
    equal(cache.get_multi(["a", "b"]), [1, 2])
    cache.delete_multi(["a", "b"])
    assert not cache.get("a")


def distributed_lock(place):
    """Two regions that need a value at once compute it once, and no lock stays behind."""
    calls = []

    def compute():
        calls.append(1)
        time.sleep(0.5)
        return "value"

    found = []

    def ask():
        cache = region(place, distributed_lock=True, thread_local_lock=False, lock_timeout=20)
        found.append(cache.get_or_create("key", compute))

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    equal((found, len(calls)), (["value"] * 4, 1))
    mutex = region(place, distributed_lock=True, thread_local_lock=False).backend.get_mutex("key")
    assert mutex.acquire(False), "the lock stays held"
    mutex.release()


main(globals())
