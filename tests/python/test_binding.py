"""The Python binding: values, ownership, exceptions, and agreement with the header."""

import ctypes
import gc
import os
import re
import signal
import tempfile
import threading
import unittest

import lsmkv
from lsmkv import _errors, _signatures
from lsmkv._signatures import SIGNATURES

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


SCALARS = {
    "void": None,
    "lsmkv_status": ctypes.c_int32,
    "int32_t": ctypes.c_int32,
    "int64_t": ctypes.c_int64,
    "uint32_t": ctypes.c_uint32,
    "uint64_t": ctypes.c_uint64,
    "size_t": ctypes.c_size_t,
    "double": ctypes.c_double,
}


def kind_of(declarator):
    """What ctypes should have for a C type."""
    kind = " ".join(declarator.replace("*", " * ").split())
    if kind in ("const char *", "const void *"):
        return ctypes.c_char_p
    return ctypes.c_void_p if "*" in kind else SCALARS[kind]


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

    def test_a_reader_beside_the_writer_moves_on_when_asked(self):
        with lsmkv.open(self.path) as db:
            db.set("k", "1")
            with lsmkv.open(self.path, read_only="on") as reader:
                db.set("k", "2")
                self.assertEqual(reader.get("k"), b"1")
                reader.refresh()
                self.assertEqual(reader.get("k"), b"2")
            db.refresh()

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
        for use in (lambda: db.get("k"), lambda: db.hget("k", "f"), lambda: db.scan(), db.snapshot):
            with self.assertRaisesRegex(lsmkv.ClosedError, "was closed"):
                use()

    def test_a_forgotten_store_is_closed_when_collected(self):
        db = lsmkv.open(self.path)
        db.set("k", "v")
        del db
        gc.collect()
        with lsmkv.open(self.path) as db:
            self.assertEqual(db.get("k"), b"v")

    def test_what_was_made_of_a_store_outlives_its_name_but_not_its_close(self):
        snapshot = lsmkv.open(self.path).snapshot()
        gc.collect()
        self.assertIsNone(snapshot.get("k"))
        store = snapshot._parent
        store.close()
        with self.assertRaises(lsmkv.ClosedError):
            snapshot.get("k")
        snapshot.close()

    def test_long_values_come_back_whole(self):
        with lsmkv.open(self.path) as db:
            for length in (0, 1, 16383, 16384, 16385, 300000):
                value = bytes(range(256)) * (length // 256) + b"x" * (length % 256)
                db.set("k", value)
                self.assertEqual(db.get("k"), value)
                self.assertEqual(db.get_view("k"), value)

    def test_a_view_stays_readable_after_the_value_and_the_store_are_gone(self):
        db = lsmkv.open(self.path)
        db.set("k", "v" * 1000)
        view = db.get_view("k")
        self.assertTrue(view.readonly)
        self.assertIsNone(db.get_view("none"))
        db.delete("k")
        db.close()
        part = view[10:20]
        del view
        gc.collect()
        self.assertEqual(bytes(part), b"v" * 10)

    def test_a_signal_in_the_middle_of_a_read_disturbs_nothing(self):
        with lsmkv.open() as db:
            db.set("a", "A" * 100)
            db.set("b", "B" * 50)
            signal.signal(signal.SIGALRM, lambda *_: db.get("b"))
            self.addCleanup(signal.signal, signal.SIGALRM, signal.SIG_DFL)
            signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
            try:
                wrong = sum(db.get("a") != b"A" * 100 for _ in range(20000))
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
            self.assertEqual(wrong, 0)

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
                    os._exit(0 if isinstance(error, lsmkv.ForkedError) else 1)
                os._exit(2)
            self.assertEqual(os.waitpid(child, 0)[1], 0)
            self.assertEqual(db.get("k"), b"parent")

    def test_options_are_listed(self):
        options = lsmkv.options()
        self.assertEqual(options["sync"].default, "interval")
        self.assertTrue(all(info.doc for info in options.values()))

    def test_every_function_is_declared_as_the_header_has_it(self):
        with open(os.path.join(ROOT, "include", "lsmkv.h")) as header:
            text = re.sub(r"/\*.*?\*/", "", header.read(), flags=re.S)
        declared = re.findall(r"LSMKV_API\s+([\w\s*]+?)(lsmkv_\w+)\(([^)]*)\);", text)
        self.assertEqual({name for _, name, _ in declared}, set(SIGNATURES))
        for result, name, parameters in declared:
            named = [p.strip() for p in parameters.split(",") if p.strip() != "void"]
            expected = [kind_of(re.sub(r"\w+$", "", p)) for p in named]
            self.assertEqual(SIGNATURES[name][1], expected, name)
            self.assertEqual(SIGNATURES[name][0], kind_of(result), name)

    def test_every_constant_is_the_one_of_the_header(self):
        with open(os.path.join(ROOT, "include", "lsmkv.h")) as header:
            found = re.findall(r"#define LSMKV_(\w+) (-?\d+)$", header.read(), flags=re.M)
        self.assertGreater(len(found), 60)
        for name, value in found:
            self.assertEqual(getattr(_signatures, name), int(value), name)

    def test_every_failing_status_has_an_exception(self):
        with open(os.path.join(ROOT, "include", "lsmkv.h")) as header:
            codes = re.findall(r"#define LSMKV_\w+ (-\d+)$", header.read(), flags=re.M)
        for code in map(int, codes):
            error = _errors.from_status(code, 5, "text")
            self.assertEqual((error.code, error.os_errno, str(error)), (code, 5, "text"))
            self.assertIsNot(type(error), lsmkv.Error, code)

    def test_versions_agree(self):
        with open(os.path.join(ROOT, "bindings", "python", "pyproject.toml")) as project:
            self.assertIn('version = "%s"' % lsmkv.version(), project.read())


if __name__ == "__main__":
    unittest.main()
