"""limits and Flask-Limiter: limits of rates."""

import time

from limits import parse
from limits.storage import storage_from_string
from limits.strategies import STRATEGIES

from scenario import equal, main


def options(place):
    return {"connection_pool": place.pool()} if place.in_process else {}


def strategy(place, name):
    """Three hits pass, the fourth does not; the window is over in time; a reset empties it."""
    storage = storage_from_string(place.url, **options(place))
    assert storage.check()
    limiter = STRATEGIES[name](storage)
    limit = parse("3 per 2 seconds")
    # A window that is fixed may end within the hits.
    time.sleep(2 - time.time() % 2)
    equal([limiter.hit(limit, "ada") for _ in range(4)], [True, True, True, False])
    assert limiter.hit(limit, "grace") and not limiter.test(limit, "ada")
    equal(limiter.get_window_stats(limit, "ada").remaining, 0)
    end = time.monotonic() + 5
    while not limiter.hit(limit, "ada"):
        assert time.monotonic() < end, "the window does not end"
        time.sleep(0.1)
    long = parse("1 per hour")
    equal([limiter.hit(long, "ada"), limiter.hit(long, "ada")], [True, False])
    limiter.clear(long, "ada")
    assert limiter.hit(long, "ada")
    storage.reset()
    assert limiter.hit(long, "ada")


def fixed_window(place):
    """limits: a fixed window."""
    strategy(place, "fixed-window")


def moving_window(place):
    """limits: a moving window."""
    strategy(place, "moving-window")


def sliding_window(place):
    """limits: a sliding window that counts."""
    strategy(place, "sliding-window-counter")


def flask_limiter(place):
    """Flask-Limiter: the request beyond the limit is refused with 429."""
    import flask
    from flask_limiter import Limiter

    app = flask.Flask(__name__)
    limiter = Limiter(
        lambda: flask.request.headers["X-Visitor"],
        app=app,
        storage_uri=place.url,
        storage_options=options(place),
        strategy="moving-window",
        headers_enabled=True,
    )

    @app.route("/")
    @limiter.limit("3 per minute")
    def index():
        return "hello"

    visitor = app.test_client()
    replies = [visitor.get("/", headers={"X-Visitor": "ada"}) for _ in range(5)]
    equal([reply.status_code for reply in replies], [200, 200, 200, 429, 429])
    equal(replies[1].headers["X-RateLimit-Remaining"], "1")
    equal(visitor.get("/", headers={"X-Visitor": "grace"}).status_code, 200)


main(globals())
