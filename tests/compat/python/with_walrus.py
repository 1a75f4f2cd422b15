"""walrus: containers, models, caches, locks, limits."""

import time

import walrus

from scenario import equal, main, raises


def database(place):
    return walrus.Database(connection_pool=place.pool())


def containers(place):
    """Containers behave as Python's own, and an autocompletion finds titles."""
    db = database(place)
    user = db.Hash("user")
    user.update(name="Ada", visits=1)
    user["name"] = "Grace"
    equal((user["name"], len(user)), (b"Grace", 2))
    items = db.List("items")
    items.extend([1, 2, 3])
    equal((items[0], len(items), list(items[1:])), (b"1", 3, [b"2", b"3"]))
    scores = db.ZSet("scores")
    scores.add({"ada": 3, "grace": 1})
    equal(scores.range(0, -1), [b"grace", b"ada"])
    evens, small = db.Set("evens"), db.Set("small")
    evens.add(2, 4, 6)
    small.add(1, 2, 3, 4)
    equal(sorted(evens & small), [b"2", b"4"])
    titles = db.autocomplete()
    for key, title in {1: "learning python", 2: "python at work", 3: "learning C"}.items():
        titles.store(key, title)
    equal(sorted(titles.search("pyth")), ["learning python", "python at work"])


def models(place):
    """Models are stored and found by their indexes."""

    class Person(walrus.Model):
        __database__ = database(place)
        name = walrus.TextField(primary_key=True)
        born = walrus.IntegerField(index=True)
        field = walrus.TextField(index=True)

    for name, born, field in [("ada", 1815, "maths"), ("grace", 1906, "navy"), ("alan", 1912, "maths")]:
        Person.create(name=name, born=born, field=field)
    equal(Person.load("grace").born, 1906)
    found = Person.query(Person.field == "maths", order_by=Person.born)
    equal([person.name for person in found], ["ada", "alan"])
    found = Person.query((Person.born > 1900) & (Person.field == "maths"))
    equal([person.name for person in found], ["alan"])
    Person.load("alan").delete()
    equal([person.name for person in Person.query(Person.field == "maths")], ["ada"])


def lock_and_limit(place):
    """A lock is held by one; a limit of a rate is enforced; a cache forgets in time."""
    db = database(place)
    with db.lock("lock", ttl=10_000):
        assert not db.lock("lock", ttl=10_000).acquire(block=False)
    other = db.lock("lock", ttl=10_000)
    assert other.acquire(block=False), "the lock stays held"
    other.release()
    limit = db.rate_limit("limit", limit=2, per=30)
    equal([limit.limit("ada") for _ in range(3)], [False, False, True])
    equal(limit.limit("grace"), False)
    cache = db.cache()
    calls = []

    @cache.cached(timeout=1)
    def compute():
        calls.append(1)
        return 7

    equal([compute(), compute(), len(calls)], [7, 7, 1])
    time.sleep(1.1)
    equal([compute(), len(calls)], [7, 2])


main(globals())
