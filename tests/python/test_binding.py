"""The Python binding: values, ownership, exceptions, and agreement with the header."""

import gc
import os
import re
import tempfile
import threading
import unittest

import lsmkv
from lsmkv import _ffi

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


class BindingTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.path = os.path.join(scratch.name, "store")

    def test_values_survive_reopening(self):
        with lsmkv.open(self.path, sync="always", memory_budget="32MiB") as db:
            self.assertTrue(db.set("k", "v"))
            db[b"\0\xff"] = b""
            self.assertIsNone(db.get("none"))
            db.sync()
            db.flush()
        with lsmkv.open(self.path) as db:
            self.assertEqual(db.get("k"), b"v")
            self.assertEqual(db.get(b"\0\xff"), b"")
            db.compact()
            db.resume()
            self.assertEqual(db.exists("k", "none", b"\0\xff"), 2)
            self.assertEqual(db.delete("k", "none"), 1)
            self.assertNotIn("k", db)
            with self.assertRaises(KeyError):
                db["k"]
            with self.assertRaises(KeyError):
                del db["k"]

    def test_text_and_numbers_are_encoded_as_redis_py_does(self):
        with lsmkv.open() as db:
            for given, stored in [("é", "é".encode()), (12, b"12"), (1.5, b"1.5"), (bytearray(b"x"), b"x")]:
                db.set("k", given)
                self.assertEqual(db.get("k"), stored)
            for wrong in (None, True, [], object()):
                with self.assertRaises(TypeError):
                    db.set("k", wrong)

    def test_failures_are_exceptions(self):
        with lsmkv.open(self.path, max_value_bytes=4) as db:
            with self.assertRaises(lsmkv.BusyError):
                lsmkv.open(self.path)
            with self.assertRaises(lsmkv.TooLargeError):
                db.set("k", "12345")
        with self.assertRaisesRegex(lsmkv.InvalidError, "memory_budget") as caught:
            lsmkv.open(self.path, memory_budgt="1MiB")
        self.assertEqual(caught.exception.code, -2)
        with self.assertRaises(ValueError):
            lsmkv.open("a\0b")
        with lsmkv.open(self.path, read_only=True) as db:
            with self.assertRaises(lsmkv.ReadOnlyError):
                db.set("k", "v")

    def test_a_closed_store_says_so_and_closes_twice(self):
        db = lsmkv.open(self.path)
        self.assertFalse(db.closed)
        db.close()
        db.close()
        self.assertTrue(db.closed)
        with self.assertRaises(lsmkv.MisuseError):
            db.get("k")

    def test_a_forgotten_store_is_closed_when_collected(self):
        db = lsmkv.open(self.path)
        db.set("k", "v")
        del db
        gc.collect()
        with lsmkv.open(self.path) as db:
            self.assertEqual(db.get("k"), b"v")

    def test_threads_share_a_store(self):
        with lsmkv.open(self.path) as db:
            def write(number):
                for i in range(100):
                    db.set("%d-%d" % (number, i), i)

            threads = [threading.Thread(target=write, args=(n,)) for n in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertEqual(sum(db.exists("%d-%d" % (n, i)) for n in range(4) for i in range(100)), 400)

    def test_a_forked_child_is_refused_and_exits_cleanly(self):
        with lsmkv.open(self.path) as db:
            db.set("k", "parent")
            child = os.fork()
            if child == 0:
                try:
                    db.set("k", "child")
                except lsmkv.Error as error:
                    os._exit(0 if error.code == _ffi.FORKED else 1)
                os._exit(2)
            self.assertEqual(os.waitpid(child, 0)[1], 0)
            self.assertEqual(db.get("k"), b"parent")

    def test_options_are_listed(self):
        options = lsmkv.options()
        self.assertEqual(options["sync"].default, "interval")
        self.assertTrue(all(info.doc for info in options.values()))

    def test_every_function_of_the_header_is_declared(self):
        with open(os.path.join(ROOT, "include", "lsmkv.h")) as header:
            text = re.sub(r"/\*.*?\*/", "", header.read(), flags=re.S)
        self.assertEqual(set(re.findall(r"\b(lsmkv_\w+)\(", text)), set(_ffi.SIGNATURES))
        for name, (_, arguments) in _ffi.SIGNATURES.items():
            declared = re.search(r"\b%s\(([^)]*)\)" % name, text).group(1)
            count = 0 if declared.strip() == "void" else declared.count(",") + 1
            self.assertEqual(len(arguments), count, name)

    def test_versions_agree(self):
        with open(os.path.join(ROOT, "bindings", "python", "pyproject.toml")) as project:
            self.assertIn('version = "%s"' % lsmkv.version(), project.read())


if __name__ == "__main__":
    unittest.main()
