"""The rows of the matrix: programs, and what each is seen to do."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """One scenario of a program, on a server and where possible in process."""

    program: str
    # The name of the package, which has the version that the page shows.
    package: str
    # What a reader is told that works.
    shows: str
    # The environment, the file below its directory, and the function in it.
    environment: str
    file: str
    function: str
    # Whether a connection pool can be handed in, so that no server is needed.
    in_process: bool = False
    # Whether it is part of the short form, which CI runs.
    short: bool = False
    # What it needs of Redis beside plain commands, if that is worth a note.
    needs: str = ""
    # Seconds after which it is ended.
    limit: int = 60

    @property
    def name(self):
        return "%s: %s" % (self.program, self.shows)


def rows_of(program, package, environment, file, scenarios, **common):
    """Rows of one program: `scenarios` has (function, what it shows, differences from `common`)."""
    return [
        Row(program, package, shows, environment, file, function, **{**common, **differences})
        for function, shows, differences in scenarios
    ]


def python(program, package, file, scenarios, environment="current", **common):
    return rows_of(program, package, environment, "python/with_%s.py" % file, scenarios, **common)


def node(program, package, file, scenarios, **common):
    return rows_of(program, package, "node", "node/with_%s.js" % file, scenarios, **common)


ROWS = [
    *python(
        "redis-py",
        "redis",
        "redis_py",
        [
            ("pipeline", "pipelines, transactions, WATCH", {}),
            ("blocking_pop", "a blocked BLPOP", {}),
            ("lock", "lock: held by one, extended, released", {}),
            ("script", "scripts", {}),
            ("pubsub", "messages by channel, by pattern, in a thread", {}),
            ("asyncio_client", "asyncio: pipeline, blocked pop, messages, lock", {}),
        ],
        in_process=True,
        short=True,
    ),
    *python(
        "gunicorn",
        "gunicorn",
        "gunicorn",
        [
            ("workers", "three workers; two of them killed, the master restarted", {}),
            ("preloaded", "`preload_app`: workers killed, the master restarted", {}),
        ],
        in_process=True,
        short=True,
    ),
    *python(
        "Celery",
        "celery",
        "celery",
        [
            ("task", "tasks and results", {}),
            ("eta", "a task with a countdown", {}),
            ("retry", "retries", {}),
            ("chord", "groups and chords", {}),
            ("control", "remote control: ping, inspect, revoke", {}),
        ],
    ),
    *python(
        "kombu",
        "kombu",
        "kombu",
        [
            ("simple_queue", "a simple queue", {}),
            ("exchanges", "direct, topic and fanout exchanges", {}),
        ],
    ),
    *python(
        "RQ",
        "rq",
        "rq",
        [
            ("job", "jobs that finish and that fail", {"in_process": True}),
            ("results", "results that are kept", {"in_process": True}),
            ("scheduled", "scheduled jobs", {"in_process": True}),
            ("commands", "a command that stops a job", {}),
        ],
        needs="streams",
    ),
    *python(
        "huey",
        "huey",
        "huey",
        [
            ("task", "consumer: tasks, results, retries", {}),
            ("schedule", "scheduled and revoked tasks", {}),
            ("lock", "a task's lock", {}),
        ],
        in_process=True,
        short=True,
    ),
    *python(
        "dramatiq",
        "dramatiq",
        "dramatiq",
        [
            ("actor", "actors, results, retries", {}),
            ("delay", "delayed messages", {}),
            ("rate_limit", "limits of rates", {}),
        ],
        in_process=True,
    ),
    *python(
        "arq",
        "arq",
        "arq",
        [("job", "jobs, results, retries", {}), ("deferred", "deferred jobs", {})],
        environment="older",
        in_process=True,
    ),
    *python(
        "saq",
        "saq",
        "saq",
        [("job", "jobs, results, retries", {}), ("scheduled", "scheduled jobs", {})],
        environment="older",
        in_process=True,
    ),
    *python(
        "taskiq-redis",
        "taskiq-redis",
        "taskiq",
        [
            ("list_broker", "broker on a list", {}),
            ("pubsub_broker", "broker on messages", {}),
            ("stream_broker", "broker on a stream", {"needs": "streams"}),
            ("schedule_source", "schedules", {}),
        ],
    ),
    *python(
        "Django cache",
        "Django",
        "django",
        [("django_cache", "values, expiry, versions, sessions", {})],
        in_process=True,
    ),
    *python(
        "django-redis",
        "django-redis",
        "django",
        [
            ("django_redis", "values, expiry, patterns, sessions", {}),
            ("django_redis_lock", "lock", {}),
        ],
        in_process=True,
    ),
    *python(
        "Flask-Session",
        "Flask-Session",
        "flask_session",
        [("session", "sessions across requests", {})],
        in_process=True,
    ),
    *python(
        "limits",
        "limits",
        "limits",
        [
            ("fixed_window", "fixed window", {}),
            ("moving_window", "moving window", {}),
            ("sliding_window", "sliding window", {}),
        ],
        environment="older",
        in_process=True,
        short=True,
    ),
    *python(
        "Flask-Limiter",
        "Flask-Limiter",
        "limits",
        [("flask_limiter", "a request beyond the limit is refused", {})],
        environment="older",
        in_process=True,
    ),
    *python(
        "dogpile.cache",
        "dogpile.cache",
        "dogpile",
        [
            ("cached", "values", {}),
            ("distributed_lock", "one computation for many", {"limit": 15}),
        ],
        in_process=True,
        short=True,
    ),
    *python(
        "channels-redis",
        "channels_redis",
        "channels",
        [
            ("layer", "channels, groups, capacity", {}),
            ("pubsub_layer", "layer on messages", {}),
        ],
    ),
    *python(
        "python-socketio",
        "python-socketio",
        "socketio",
        [("rooms", "two servers and a process that emits", {})],
    ),
    *python(
        "walrus",
        "walrus",
        "walrus",
        [
            ("containers", "containers, autocompletion", {}),
            ("models", "models and queries", {}),
            ("lock_and_limit", "lock, limit of a rate, cache", {}),
        ],
        in_process=True,
    ),
    *node(
        "ioredis",
        "ioredis",
        "ioredis",
        [
            ("commands", "pipelines, transactions, scans, a blocked pop", {}),
            ("script", "scripts", {}),
            ("pubsub", "messages", {}),
        ],
        short=True,
    ),
    *node(
        "node-redis",
        "redis",
        "node_redis",
        [
            ("commands", "transactions, WATCH, scans", {}),
            ("script", "scripts", {}),
            ("pubsub", "messages, also of shards", {}),
        ],
    ),
    *node(
        "BullMQ",
        "bullmq",
        "queues",
        [
            ("bullmq", "jobs, results, retries", {}),
            ("bullmq_delayed", "delayed jobs", {}),
            ("bullmq_events", "events", {}),
        ],
        needs="streams",
    ),
    *node("Bull", "bull", "queues", [("bull", "jobs, retries, delayed jobs", {})]),
    *node("Bee-Queue", "bee-queue", "queues", [("bee_queue", "jobs, delayed jobs", {})]),
    *node("connect-redis", "connect-redis", "web", [("session", "sessions of Express", {})]),
    *node("Keyv", "@keyv/redis", "web", [("keyv", "values, expiry, namespaces", {})]),
    *node(
        "rate-limiter-flexible",
        "rate-limiter-flexible",
        "web",
        [
            ("rate_limit_ioredis", "limit of a rate, with ioredis", {}),
            ("rate_limit_node_redis", "limit of a rate, with node-redis", {}),
        ],
        short=True,
    ),
    *node("redlock", "redlock", "web", [("redlock", "locks of several keys", {})], short=True),
    *node(
        "socket.io",
        "@socket.io/redis-adapter",
        "web",
        [("socket_io", "adapter: two servers, rooms", {})],
    ),
    *rows_of(
        "Sidekiq",
        "ruby-sidekiq",
        "ruby",
        "ruby/with_sidekiq.rb",
        [
            ("job", "jobs", {}),
            ("scheduled", "scheduled jobs", {}),
            ("retried", "retries", {}),
        ],
    ),
    *rows_of(
        "redis (Rust)",
        "redis",
        "rust",
        "rust",
        [
            ("commands", "pipelines, transactions, scans", {}),
            ("script", "scripts", {}),
            ("pubsub", "messages", {}),
            ("asynchronous", "tokio, a blocked pop", {}),
        ],
    ),
]

# Why a scenario in Python has no row in process: the program takes an address, and no pool of ours.
NO_POOL = {
    "Celery": "its broker is kombu, and its results are kept by a backend that is made from an address; its "
    "worker is a process of its own.",
    "kombu": "its transport makes the pool itself, from the address of the broker; what can be set are "
    "arguments of that pool.",
    "RQ": "a command stops the job of a worker in another process, which takes an address; the other scenarios "
    "run in one process.",
    "taskiq-redis": "brokers, results and schedules each take an address and make their pool of it; its worker "
    "is a process of its own.",
    "channels-redis": "its layers take addresses, or the arguments of a pool, and make the pool themselves.",
    "python-socketio": "its manager takes an address and makes the client, and the client the pool.",
}
