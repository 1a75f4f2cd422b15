"""Pipelines, transactions, snapshots, batches, databases."""

import select
import threading
import unittest

import lsmkv
from places import PLACE, SHARED, PlaceTest, on_cluster, opened


class Handles(PlaceTest):
    def test_messages_arrive_where_they_are_subscribed_to(self):
        with self.db.pubsub() as channels:
            channels.subscribe("a", "b")
            channels.psubscribe("n*")
            kinds = [channels.get_message()["data"] for _ in range(3)]
            self.assertEqual(kinds, [1, 2, 3])
            self.publish("a", "x", 1)
            found = {"type": "message", "pattern": None, "channel": b"a", "data": b"x"}
            self.assertEqual(channels.get_message(5), found)
            self.publish("news", "y", 1)
            self.assertTrue(select.select([channels], [], [], 1)[0])
            self.assertEqual(channels.get_message(1)["pattern"], b"n*")
            self.assertFalse(select.select([channels], [], [], 0)[0])
            self.assertIsNone(channels.get_message(0.01))
            if not on_cluster():
                self.assertEqual(self.db.pubsub_numsub("a", "x"), [(b"a", 1), (b"x", 0)])
            self.later(self.db.publish, "b", "late")
            self.assertEqual(next(channels.listen())["data"], b"late")
        if PLACE is None:
            self.publish("a", "nobody", 0)

    def test_events_of_keys_are_sent_while_they_are_on(self):
        with self.db.pubsub() as channels:
            channels.psubscribe("__key*")
            channels.get_message()
            self.db.set("k", "v")
            self.assertIsNone(channels.get_message())
            self.db.set_keyspace_events("E$")
            self.db.set("k", "v")
            self.db.lpush("l", "v")
            event = channels.get_message(5)
            self.assertEqual((event["channel"], event["data"]), (b"__keyevent@0__:set", b"k"))
            self.assertIsNone(channels.get_message())
            with self.assertRaises(lsmkv.InvalidError):
                self.db.set_keyspace_events("Q")
            self.db.set_keyspace_events("")
            self.db.set("k", "v")
            self.assertIsNone(channels.get_message())

    def test_a_slow_subscriber_is_cut_off_at_the_limit(self):
        for wrong in ((-1, 0, 0), (0, 2**64, 0), (0, 0, 1.5)):
            with self.assertRaises(ValueError):
                self.db.set_message_limits(*wrong)
        self.db.set_message_limits(1000, 0, 0)
        with self.db.pubsub() as channels:
            channels.subscribe("c")
            channels.get_message()
            while self.db.publish("c", "x" * 100):
                pass
            with self.assertRaises(lsmkv.TooLargeError):
                channels.get_message()
            self.db.set_message_limits(0, 0, 0)
            channels.subscribe("c")
            channels.get_message()
            for _ in range(100):
                self.assertEqual(self.db.publish("c", "x" * 100), 1)
            self.assertEqual(channels.get_message()["data"], b"x" * 100)

    def publish(self, channel, message, receivers):
        """Publishes. A node of a cluster counts its own subscribers alone."""
        counted = self.db.publish(channel, message)
        self.assertTrue(on_cluster() or counted == receivers, counted)

    def test_a_pop_waits_for_a_push_of_another_thread(self):
        self.later(self.db.rpush, "queue", "job")
        self.assertEqual(self.db.blpop(["none", "queue"], 30), (b"queue", b"job"))
        self.assertIsNone(self.db.brpop("queue", 0.01))
        self.db.rpush("l", "a", "b", "c")
        self.assertEqual(self.db.blmove("l", "m", 1), b"a")
        self.assertEqual(self.db.brpoplpush("l", "m", 1), b"c")
        self.assertEqual(self.db.blmpop(1, 1, "l", direction="LEFT"), [b"l", [b"b"]])
        self.db.zadd("z", {"x": 1, "y": 2, "w": 3})
        self.assertEqual(self.db.bzpopmin("z", 1), (b"z", b"x", 1.0))
        self.assertEqual(self.db.bzpopmax("z", 1), (b"z", b"w", 3.0))
        self.assertEqual(self.db.bzmpop(1, 1, ["z"], min=True), [b"z", [[b"y", 2.0]]])

    def test_a_pipeline_gives_the_result_of_each_command(self):
        for transaction in (True, False):
            with self.db.pipeline(transaction) as pipe:
                pipe.set("a", 1).incr("a").hset("h", mapping={"x": 1}).hgetall("h")
                self.assertEqual(len(pipe), 4)
                self.assertIsNone(self.db.get("a"))
                self.assertEqual(pipe.execute(), [True, 2, 1, {b"x": b"1"}])
                self.assertEqual((len(pipe), pipe.execute()), (0, []))
            self.db.flushdb()

    def test_an_error_in_a_pipeline_names_its_command(self):
        for transaction in (True, False):
            pipe = self.db.pipeline(transaction).set("a", 1).lpush("a", 2).set("b", 3)
            with self.assertRaisesRegex(lsmkv.WrongTypeError, r"Command # 2 \(LPUSH a 2\) of pipeline"):
                pipe.execute()
            self.assertEqual(self.db.get("b"), b"3")
            results = pipe.get("a").lpush("a", 2).execute(raise_on_error=False)
            self.assertEqual(results[0], b"1")
            self.assertIsInstance(results[1], lsmkv.WrongTypeError)

    def test_a_transaction_with_a_malformed_command_does_nothing(self):
        pipe = self.db.pipeline().set("a", 1)
        pipe.execute_command("SET")
        with self.assertRaisesRegex(lsmkv.ResponseError, "Command # 2 .*wrong number of arguments"):
            pipe.execute()
        self.assertIsNone(self.db.get("a"))

    def test_a_value_of_a_wrong_type_is_refused_when_queued(self):
        pipe = self.db.pipeline().set("a", 1)
        with self.assertRaises(lsmkv.DataError):
            pipe.set("b", None)
        self.assertEqual(pipe.get("a").execute(), [True, b"1"])

    def test_watch_sees_what_others_change(self):
        self.db.set("a", 1)
        with self.db.pipeline() as pipe:
            pipe.watch("a")
            value = int(pipe.get("a"))
            pipe.multi()
            pipe.set("a", value + 1)
            self.assertEqual(pipe.execute(), [True])
        with self.db.pipeline() as pipe:
            pipe.watch("a")
            self.db.set("a", 10)
            pipe.multi()
            pipe.set("a", 3)
            with self.assertRaises(lsmkv.WatchError):
                pipe.execute()
            self.assertFalse(pipe.watching)
        with self.db.pipeline() as pipe:
            pipe.watch("a")
            self.db.set("a", 11)
            self.assertTrue(pipe.unwatch())
            pipe.set("a", 4)
            self.assertEqual(pipe.execute(), [True])

    def test_misuse_of_a_pipeline_is_refused_as_redis_py_does(self):
        pipe = self.db.pipeline()
        pipe.multi()
        for wrong in (pipe.multi, lambda: pipe.watch("a")):
            with self.assertRaises(lsmkv.RedisError):
                wrong()
        pipe.reset()
        pipe.set("a", 1)
        with self.assertRaises(lsmkv.RedisError):
            pipe.multi()

    def test_the_transaction_of_redis_py_runs_until_nothing_interferes(self):
        self.db.set("a", 1)
        runs = []

        def add(pipe):
            runs.append(1)
            value = int(pipe.get("a"))
            if len(runs) == 1:
                self.db.set("a", 5)
            pipe.multi()
            pipe.set("a", value + 1)
            return "done"

        self.assertEqual(self.db.transaction(add, "a", value_from_callable=True), "done")
        self.assertEqual((self.db.get("a"), len(runs)), (b"6", 2))

    def test_a_transaction_is_all_or_nothing(self):
        with self.db.transaction() as t:
            t.set("a", 1)
            t.rpush("l", 1, 2)
            self.assertEqual((t.get("a"), self.db.get("a")), (b"1", None))
            self.assertEqual(t.pipeline().get("a").llen("l").execute(), [b"1", 2])
        self.assertEqual((self.db.get("a"), self.db.llen("l")), (b"1", 2))
        with self.assertRaises(ZeroDivisionError):
            with self.db.transaction() as t:
                t.set("a", 2)
                1 // 0
        self.assertEqual(self.db.get("a"), b"1")
        t = self.db.begin()
        t.set("a", 3)
        t.rollback()
        with self.assertRaises(lsmkv.ClosedError):
            t.get("a")
        t.close()
        self.assertEqual(self.db.get("a"), b"1")

    def test_a_conflict_is_told_and_transact_tries_again(self):
        t = self.db.begin()
        t.get("a")
        self.db.set("a", 1)
        t.set("b", 1)
        with self.assertRaises(lsmkv.WatchError):
            t.commit()
        t.close()
        self.assertIsNone(self.db.get("b"))
        self.db.set("n", 0)

        def work():
            for _ in range(25):
                self.db.transact(lambda t: t.set("n", int(t.get("n")) + 1))

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(self.db.get("n"), b"100")

        def never(t):
            t.get("n")
            self.db.incr("n")
            t.set("n", 0)

        with self.assertRaises(lsmkv.WatchError):
            self.db.transact(never, retries=2)
        self.assertEqual(self.db.get("n"), b"103")

    def test_a_snapshot_stays_as_it_was(self):
        self.db.set("a", 1)
        self.db.select(2).set("x", 2)
        with self.db.snapshot() as snapshot:
            self.db.set("a", 2)
            self.assertEqual((snapshot.get("a"), snapshot.select(2).get("x")), (b"1", b"2"))
            self.assertEqual(snapshot.pipeline().get("a").execute(), [b"1"])
            self.assertEqual(list(snapshot.iter_keys()), [b"a"])
            for write in (lambda: snapshot.set("a", 3), lambda: snapshot.hset("h", "f", "v")):
                with self.assertRaises(lsmkv.ReadOnlyError):
                    write()

    def test_a_failure_names_the_command_only_among_several(self):
        with self.db.snapshot() as snapshot:
            with self.assertRaises(lsmkv.ReadOnlyError) as alone:
                snapshot.execute_command("SET", "a", 1)
            with self.assertRaises(lsmkv.ReadOnlyError) as second:
                snapshot.pipeline(transaction=False).get("a").set("a", 1).execute()
        self.assertNotIn("command 1", str(alone.exception))
        self.assertEqual(str(second.exception), "command 2 of 2: " + str(alone.exception))

    def test_a_batch_runs_all_or_nothing(self):
        with self.db.batch() as batch:
            batch.set("a", 1).rpush("l", "x", "y").hset("h", mapping={"f": 1})
            self.assertIsNone(self.db.get("a"))
        self.assertEqual((self.db.get("a"), self.db.llen("l"), self.db.hget("h", "f")), (b"1", 2, b"1"))
        with self.assertRaises(lsmkv.WrongTypeError):
            with self.db.batch() as batch:
                batch.set("a", 2).lpush("a", 1)
        # A server does not undo the commands that ran.
        self.assertEqual(self.db.get("a"), b"1" if PLACE is None or SHARED else b"2")
        batch = self.db.batch()
        batch.set("a", 5)
        batch.priority(1).set("a", 6)
        batch.commit()
        self.assertEqual(self.db.get("a"), b"5")
        batch.clear()
        batch.set("a", 7)
        batch.commit(timeout_ms=1000)
        batch.close()
        self.assertEqual(self.db.get("a"), b"7")

    def test_a_ticket_tells_when_writes_are_durable(self):
        transaction = self.db.begin()
        transaction.set("a", 1)
        ticket = transaction.commit_async()
        transaction.close()
        self.assertTrue(self.db.wait(ticket, 10000))
        with self.db.batch() as batch:
            batch.set("b", 1)
            later = batch.commit_async()
        self.assertGreater(later, ticket)
        self.assertTrue(self.db.wait(later, 10000))

    def test_databases_sync_modes_copies_and_reports(self):
        with self.db.select(1) as one:
            one.set("k", "one")
            self.assertIsNone(self.db.get("k"))
        for wrong in (-1, 2**32):
            with self.assertRaises(ValueError):
                self.db.select(wrong)
        with self.assertRaises(lsmkv.OutOfRangeError):
            self.db.select(1000)
        with self.db.with_sync("always") as durable:
            durable.set("d", 1)
        copy = self.path + "-copy"
        self.db.checkpoint(copy)
        self.db.delete("d")
        with lsmkv.open(copy) as other:
            self.assertEqual((other.get("d"), other.select(1).get("k")), (b"1", b"one"))
        self.assertEqual(self.db.check(), [])
        self.assertIn("keys_estimated", self.db.stats())

    def test_everything_is_there_after_reopening(self):
        with self.db.transaction() as t:
            t.zadd("z", {"m": 1})
        self.db.pipeline().set("p", 1).execute()
        self.db.close()
        with opened(self.path) as db:
            self.assertEqual((db.zscore("z", "m"), db.get("p")), (1.0, b"1"))


if __name__ == "__main__":
    unittest.main()
