"""Celery: a worker of its own process, with the default pool."""

import contextlib
import os
import sys
import time

from scenario import equal, main, raises, wait_until, worker


@contextlib.contextmanager
def running(place):
    """Yields the application while a worker runs."""
    os.environ["COMPAT_URL"] = place.url
    import celery_app

    command = [sys.executable, "-m", "celery", "-A", "celery_app", "worker", "-c", "2", "-l", "INFO"]
    with worker(*command, COMPAT_URL=place.url):
        yield celery_app


def task(place):
    """Tasks run and their results, or errors, come back."""
    with running(place) as tasks:
        equal(tasks.add.delay(2, 3).get(timeout=20), 5)
        results = [tasks.add.delay(n, n) for n in range(20)]
        equal([result.get(timeout=20) for result in results], [n + n for n in range(20)])
        with raises(ValueError):
            tasks.fails.delay().get(timeout=20)


def eta(place):
    """A task with a countdown does not run before its time."""
    with running(place) as tasks:
        equal(tasks.add.delay(1, 1).get(timeout=20), 2)
        begun = time.monotonic()
        equal(tasks.add.apply_async((1, 2), countdown=1.5).get(timeout=20), 3)
        assert time.monotonic() - begun >= 1.4, "it ran too early"


def retry(place):
    """A task that asks for it is tried again."""
    with running(place) as tasks:
        equal(tasks.succeeds_at_third_try.delay().get(timeout=20), 2)


def chord(place):
    """The callback of a chord sees the results of the whole group."""
    with running(place) as tasks:
        from celery import chord, group

        parts = (tasks.add.s(n, 1) for n in range(5))
        equal(chord(parts)(tasks.total.s()).get(timeout=20), 15)
        equal(group(tasks.add.s(n, n) for n in range(3))().get(timeout=20), [0, 2, 4])


def control(place):
    """Workers answer a ping and forget a task that was revoked."""
    with running(place) as tasks:
        answers = wait_until(lambda: tasks.app.control.ping(timeout=1), seconds=20)
        equal([list(answer.values()) for answer in answers], [[{"ok": "pong"}]])
        result = tasks.add.apply_async((1, 1), countdown=3)
        wait_until(lambda: any((tasks.app.control.inspect().scheduled() or {}).values()))
        result.revoke()
        from celery.exceptions import TaskRevokedError

        with raises(TaskRevokedError):
            result.get(timeout=20)


main(globals())
