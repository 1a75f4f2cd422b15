"""RQ: jobs and a worker; in process with the worker that does not fork."""

import time
from datetime import timedelta

import rq
from rq.command import send_stop_job_command
from rq.job import JobStatus

import rq_tasks
from scenario import client, equal, main, program, wait_until, worker


def job(place):
    """A job runs; its status shows it, as does that of a job that fails."""
    db = client(place)
    jobs = rq.Queue(connection=db)
    good, bad = jobs.enqueue(rq_tasks.multiply, 3, 4), jobs.enqueue(rq_tasks.fail)
    rq.SimpleWorker([jobs], connection=db).work(burst=True)
    equal(good.get_status(refresh=True), JobStatus.FINISHED)
    equal(bad.get_status(refresh=True), JobStatus.FAILED)
    equal(jobs.failed_job_registry.get_job_ids(), [bad.id])
    equal(good.return_value(refresh=True), 12)


def results(place):
    """The results of a job are kept, and the newest is read."""
    db = client(place)
    jobs = rq.Queue(connection=db)
    good, bad = jobs.enqueue(rq_tasks.multiply, 3, 4), jobs.enqueue(rq_tasks.fail)
    rq.SimpleWorker([jobs], connection=db).work(burst=True)
    equal(good.latest_result().return_value, 12)
    assert "ValueError: no" in bad.latest_result().exc_string
    equal(len(good.results()), 1)


def scheduled(place):
    """A job that is to run later moves to its queue in time, and then runs."""
    db = client(place)
    jobs = rq.Queue(connection=db)
    later = jobs.enqueue_in(timedelta(seconds=1), rq_tasks.multiply, 5, 5)
    equal(jobs.scheduled_job_registry.get_job_ids(), [later.id])
    equal(jobs.get_job_ids(), [])
    scheduler = rq.scheduler.RQScheduler([jobs], connection=db)
    scheduler.acquire_locks()
    scheduler.enqueue_scheduled_jobs()
    equal(jobs.get_job_ids(), [])
    time.sleep(1.1)
    scheduler.enqueue_scheduled_jobs()
    equal(jobs.get_job_ids(), [later.id])
    scheduler.release_locks()
    rq.SimpleWorker([jobs], connection=db).work(burst=True)
    equal(later.get_status(refresh=True), JobStatus.FINISHED)


def commands(place):
    """A worker in its own process obeys a command that stops its job."""
    db = client(place)
    jobs = rq.Queue(connection=db)
    sleeping = jobs.enqueue(rq_tasks.sleep, 60)
    with worker(program("rq"), "worker", "--url", place.url):
        wait_until(lambda: sleeping.get_status(refresh=True) == JobStatus.STARTED)
        time.sleep(0.5)
        send_stop_job_command(db, sleeping.id)
        wait_until(lambda: sleeping.get_status(refresh=True) == JobStatus.STOPPED)


main(globals())
