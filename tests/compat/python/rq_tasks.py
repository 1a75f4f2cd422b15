"""The functions that with_rq.py enqueues."""

import time


def multiply(x, y):
    return x * y


def fail():
    raise ValueError("no")


def sleep(seconds):
    time.sleep(seconds)
