"""Django: its own cache for Redis, and django-redis."""

import time

import django
from django.conf import settings

from scenario import equal, main, raises

# The store, for the pool class of django-redis, which is named by a path.
PLACE = None


class GivenPool:
    """A pool class of which an instance is the scenario's own pool."""

    @classmethod
    def from_url(cls, url, parser_class=None, **options):
        return PLACE.pool(**options)


def configured(place, backend, **options):
    global PLACE
    PLACE = place
    # Django imports the class by its path.
    import with_django as this

    this.PLACE = place
    cache = {"BACKEND": backend, "LOCATION": place.url, "OPTIONS": options}
    settings.configure(
        CACHES={"default": cache},
        SESSION_ENGINE="django.contrib.sessions.backends.cache",
        INSTALLED_APPS=["django.contrib.sessions"],
    )
    django.setup()
    from django.core.cache import cache

    return cache


def values(cache):
    """What the documentation of Django's caches promises."""
    assert cache.add("k", {"a": [1, 2]}, timeout=30) and not cache.add("k", "other")
    equal(cache.get("k"), {"a": [1, 2]})
    equal(cache.get("none", "default"), "default")
    equal(cache.get_or_set("computed", lambda: 42), 42)
    equal(cache.incr("computed", 8), 50)
    with raises(ValueError):
        cache.incr("none")
    cache.set_many({"a": 1, "b": 2})
    equal(cache.get_many(["a", "b", "c"]), {"a": 1, "b": 2})
    cache.set("short", 1, timeout=1)
    assert cache.touch("k", 60) and cache.delete("a") and not cache.has_key("a")
    time.sleep(1.1)
    equal(cache.get("short"), None)
    equal(cache.get("b", version=2), None)
    equal(cache.incr_version("b"), 2)
    equal(cache.get("b", version=2), 2)


def sessions():
    from django.contrib.sessions.backends.cache import SessionStore

    session = SessionStore()
    session["cart"] = [1, 2]
    session.create()
    equal(SessionStore(session.session_key)["cart"], [1, 2])
    session.flush()
    assert not SessionStore(session.session_key or "none").exists("none")


def django_cache(place):
    """Django's own cache: values, expiry, versions, sessions."""
    options = {"pool_class": "with_django.GivenPool"} if place.in_process else {}
    cache = configured(place, "django.core.cache.backends.redis.RedisCache", **options)
    values(cache)
    sessions()
    cache.clear()
    equal(cache.get("k"), None)


def django_redis(place):
    """django-redis: values, expiry, patterns, sessions."""
    options = {"CONNECTION_POOL_CLASS": "with_django.GivenPool"} if place.in_process else {}
    cache = configured(place, "django_redis.cache.RedisCache", **options)
    values(cache)
    sessions()
    cache.set("user:1", 1, timeout=100)
    cache.set("user:2", 2, timeout=None)
    assert 90 < cache.ttl("user:1") <= 100 and cache.ttl("user:2") is None
    equal(sorted(cache.iter_keys("user:*")), ["user:1", "user:2"])
    equal(cache.delete_pattern("user:*"), 2)
    equal(cache.keys("user:*"), [])


def django_redis_lock(place):
    """django-redis: a lock excludes others and is released."""
    options = {"CONNECTION_POOL_CLASS": "with_django.GivenPool"} if place.in_process else {}
    cache = configured(place, "django_redis.cache.RedisCache", **options)
    with cache.lock("lock", timeout=10):
        assert not cache.lock("lock", timeout=10).acquire(blocking=False)
    other = cache.lock("lock", timeout=10)
    assert other.acquire(blocking=False), "the lock stays held"
    other.release()


if __name__ == "__main__":
    main(globals())
