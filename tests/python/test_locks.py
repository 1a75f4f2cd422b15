"""`lsmkv.Lock`: held by one, lost, extended, released."""

import threading
import time
import unittest

import lsmkv
from places import PlaceTest


class Locks(PlaceTest):
    def test_a_lock_is_held_by_one(self):
        with self.db.lock("l", timeout=10) as lock:
            self.assertTrue(lock.locked() and lock.owned())
            other = lsmkv.Lock(self.db, "l", sleep=0.01)
            self.assertFalse(other.acquire(blocking=False))
            self.assertFalse(other.acquire(blocking_timeout=0.05))
            self.assertFalse(other.owned())
            self.assertTrue(lock.extend(10) and 10 < self.db.ttl("l") <= 20)
            self.assertTrue(lock.reacquire() and self.db.ttl("l") <= 10)
            self.assertTrue(lock.extend(5, replace_ttl=True) and self.db.ttl("l") <= 5)
        self.assertFalse(lock.locked())
        with self.assertRaises(lsmkv.LockError):
            lock.release()

    def test_a_lock_that_is_lost_is_not_released_for_another(self):
        lock = self.db.lock("l", timeout=0.02)
        self.assertTrue(lock.acquire())
        time.sleep(0.05)
        with self.db.lock("l") as second:
            for call in (lock.reacquire, lambda: lock.extend(1), lock.release):
                with self.assertRaises(lsmkv.LockNotOwnedError):
                    call()
            with self.assertRaises(lsmkv.LockError):
                second.extend(1)
            self.assertTrue(second.owned())
        with self.assertRaises(ValueError):
            self.db.lock("l", timeout=0)

    def release_works_here(self):
        """Leaves the test where the place has no transactions, by which a lock is released."""
        with self.db.lock("here", timeout=1):
            pass

    def test_threads_take_turns(self):
        inside, most, total = [], [], []
        self.release_works_here()

        def work():
            for _ in range(20):
                with self.db.lock("l", timeout=10, sleep=0.001):
                    inside.append(1)
                    most.append(len(inside))
                    total.append(1)
                    inside.pop()

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual((max(most), len(total)), (1, 80))

    def test_another_thread_may_release_if_told(self):
        self.release_works_here()
        lock = self.db.lock("l", thread_local=False)
        lock.acquire()
        thread = threading.Thread(target=lock.release)
        thread.start()
        thread.join()
        self.assertFalse(lock.locked())


if __name__ == "__main__":
    unittest.main()
