"""The application of with_celery.py, which its worker loads."""

import os

from celery import Celery

url = os.environ.get("COMPAT_URL", "")
app = Celery("compat", broker=url, backend=url)
app.conf.broker_connection_retry_on_startup = True
app.conf.result_expires = 600


@app.task
def add(x, y):
    return x + y


@app.task
def total(numbers):
    return sum(numbers)


@app.task(bind=True, max_retries=3)
def succeeds_at_third_try(self):
    if self.request.retries < 2:
        raise self.retry(countdown=0.1)
    return self.request.retries


@app.task
def fails():
    raise ValueError("no")
