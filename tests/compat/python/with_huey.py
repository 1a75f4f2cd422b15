"""huey: tasks, its consumer, its schedule, its locks."""

import contextlib
import os
import time

from scenario import equal, main, program, raises, wait_until, worker


@contextlib.contextmanager
def running(place):
    """Yields a module of tasks while a consumer runs: a process, or threads in process."""
    if not place.in_process:
        os.environ["COMPAT_URL"] = place.url
        import huey_app

        with worker(program("huey_consumer"), "huey_app.huey", "-w", "2", COMPAT_URL=place.url):
            yield huey_app
        return
    import huey as library

    class Tasks:
        huey = library.RedisHuey("compat", connection_pool=place.pool())
        add = staticmethod(huey.task()(lambda x, y: x + y))

        @staticmethod
        @huey.task(retries=2)
        def fails_once(key):
            if Tasks.huey.storage.conn.incr(key) == 1:
                raise ValueError("again")
            return "done"

    consumer = Tasks.huey.create_consumer(workers=2, check_worker_health=False)
    consumer.start()
    yield Tasks
    consumer.stop(graceful=True)


def result_so_far(result):
    """The result that is stored: None before the first try, and its error before the second."""
    from huey.exceptions import TaskException

    try:
        return result.get(preserve=True)
    except TaskException as error:
        result.reset()  # It keeps what it has read.
        return error


def task(place):
    """Tasks run and their results come back; a failed one is tried again."""
    with running(place) as tasks:
        equal(tasks.add(1, 2)(blocking=True, timeout=10), 3)
        results = [tasks.add(n, n) for n in range(10)]
        equal([r(blocking=True, timeout=10) for r in results], [n + n for n in range(10)])
        again = tasks.fails_once("tries")
        wait_until(lambda: result_so_far(again) == "done")
        equal(tasks.huey.storage.conn.get("tries"), b"2")


def schedule(place):
    """A delayed task runs at its time, and a revoked one does not."""
    with running(place) as tasks:
        equal(tasks.add(0, 0)(blocking=True, timeout=10), 0)
        begun = time.monotonic()
        later, never = (tasks.add.schedule((n, n), delay=1.5) for n in (1, 2))
        never.revoke()
        wait_until(lambda: tasks.huey.scheduled_count() == 2)
        equal(later(blocking=True, timeout=10), 2)
        assert time.monotonic() - begun >= 0.9, "it ran too early"
        wait_until(lambda: tasks.huey.scheduled_count() == 0)
        time.sleep(0.5)
        equal(never(blocking=False), None)


def lock(place):
    """A lock of a task is held by one."""
    import huey

    options = {"connection_pool": place.pool()} if place.in_process else {"url": place.url}
    tasks = huey.RedisHuey("compat", **options)
    with tasks.lock_task("only-one"):
        assert tasks.is_locked("only-one")
        with raises(huey.exceptions.TaskLockedException):
            with tasks.lock_task("only-one"):
                pass
    assert not tasks.is_locked("only-one")


main(globals())
