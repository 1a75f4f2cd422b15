"""The application and the configuration of with_gunicorn.py: each request is counted, and its worker
noted. COMPAT_URL names a server, or the directory of a store that the workers share."""

import os

WHERE = os.environ["COMPAT_URL"]
bind = os.environ["COMPAT_BIND"]
workers = 3
preload_app = "COMPAT_PRELOAD" in os.environ


def connected():
    """A client of the store, of the process that calls this alone."""
    import redis

    if WHERE.startswith("redis://"):
        return redis.Redis.from_url(WHERE)
    import lsmkv

    return redis.Redis(connection_pool=lsmkv.ConnectionPool(WHERE, shared=True))


# With preload_app the master has the store open too.
client = connected() if preload_app else None


def post_fork(server, worker):
    global client
    client = connected()


def application(environ, start_response):
    client.sadd("workers", os.getpid())
    body = b"%d" % client.incr("requests")
    start_response("200 OK", [("Content-Length", str(len(body)))])
    return [body]
