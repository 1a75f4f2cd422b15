"""kombu: queues and exchanges."""

import contextlib
import queue
import socket

from kombu import Connection, Consumer, Exchange, Producer, Queue

from scenario import equal, main, raises, wait_until


def simple_queue(place):
    """Messages of a simple queue arrive once, in order."""
    with Connection(place.url) as connection:
        with connection.SimpleQueue("simple") as messages:
            for n in range(3):
                messages.put({"n": n})
            for n in range(3):
                message = messages.get(timeout=5)
                equal(message.payload, {"n": n})
                message.ack()
            with raises(queue.Empty):
                messages.get(timeout=0.3)


def until_quiet(connection):
    """Handles events until half a second passes without one."""
    with contextlib.suppress(socket.timeout):
        while True:
            connection.drain_events(timeout=0.5)


def exchanges(place):
    """A direct, a topic and a fanout exchange deliver to the queues that are bound."""
    received = []

    def take(body, message):
        received.append((message.delivery_info["routing_key"], body))
        message.ack()

    direct = Queue("direct", Exchange("direct", "direct"), routing_key="video")
    topic = Queue("topic", Exchange("topic", "topic"), routing_key="log.*")
    first, second = (Queue(name, Exchange("all", "fanout")) for name in ("first", "second"))
    with Connection(place.url) as connection:
        one, two = connection.channel(), connection.channel()
        with Consumer(one, [direct, topic, first], callbacks=[take]), Consumer(
            two, [second], callbacks=[take]
        ):
            until_quiet(connection)  # The queues of the fanout exchange subscribe.
            producer = Producer(connection.channel())
            producer.publish(1, exchange="direct", routing_key="video")
            producer.publish(2, exchange="topic", routing_key="log.error")
            producer.publish(3, exchange="topic", routing_key="other")
            producer.publish(4, exchange="all", routing_key="")
            wait_until(lambda: until_quiet(connection) or len(received) >= 4)
            until_quiet(connection)
    equal(sorted(received), [("", 4), ("", 4), ("log.error", 2), ("video", 1)])


main(globals())
