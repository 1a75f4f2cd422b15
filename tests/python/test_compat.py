"""The harness of tests/compat: what it calls a failure, and what it writes."""

import contextlib
import io
import os
import sys
import time
import unittest
from unittest import mock

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "compat"))

import environments
import outcome
import page
import rows
import run as harness


def python(text, limit=30):
    return outcome.run([sys.executable, "-c", text], limit, {})[0]


def result(name, server, in_process=None, **more):
    row = {"program": name, "version": "1", "scenario": "s", "short": True, "needs": ""}
    return {**row, "server": server, "in process": in_process, **more}


class Outcomes(unittest.TestCase):
    def test_a_scenario_that_returns_is_ok(self):
        self.assertEqual(python("print('FAILED is only a word')"), "ok")

    def test_the_line_failed_is_the_reason(self):
        text = "import sys; print('noise'); print('FAILED ValueError: no'); sys.exit(1)"
        self.assertEqual(python(text), "ValueError: no")
        self.assertEqual(python("import sys; sys.exit(3)"), "it ended with status 3")

    def test_what_the_server_refused_is_named_instead_of_a_time_out(self):
        refusals = "ERR unknown command 'xadd', with args beginning with: 'k'\\nERR unknown command 'EVAL'"
        end = "; print('FAILED TimeoutError: nothing came'); sys.exit(1)"
        text = 'import sys; print("%s")' % refusals + end
        self.assertEqual(python(text), "unknown command: EVAL, XADD")
        text = "import sys; print('ERR syntax error')" + end
        self.assertEqual(python(text), "TimeoutError: nothing came (ERR syntax error)")

    def test_a_scenario_that_hangs_is_ended_with_all_that_it_started(self):
        text = "import subprocess, sys, time; subprocess.Popen(['sleep', '50']); time.sleep(50)"
        begun = time.monotonic()
        self.assertEqual(python(text, limit=1), "no end after 1 seconds")
        self.assertLess(time.monotonic() - begun, 20)

    def test_addresses_and_identifiers_are_left_out(self):
        text = "connection to 127.0.0.1:4242 of 1b326b4e-e31d-11f1-b998-02fc00000001 lost"
        self.assertEqual(outcome.one_line(text), "connection to the server of ID lost")


class Short(unittest.TestCase):
    def compared(self, found, known):
        matrix = mock.Mock(missing={})
        with mock.patch.object(harness, "known_to_work", known.get):
            with contextlib.redirect_stdout(io.StringIO()) as said:
                return harness.short(matrix, found), said.getvalue()

    def test_a_row_that_the_page_calls_working_must_work(self):
        known = {"server": {"A: s"}, "in process": {"A: s"}}
        status, said = self.compared([result("A", "ok", "ok")], known)
        self.assertEqual((status, said), (0, "2 passed, 0 failed, 0 skipped\n"))
        for broken in (result("A", "no EVAL", "ok"), result("A", "ok", "no EVAL")):
            status, said = self.compared([broken], known)
            self.assertEqual(status, 1)
            self.assertIn("1 passed, 1 failed", said)

    def test_a_row_that_never_worked_fails_nothing_and_a_new_one_is_told(self):
        known = {"server": set(), "in process": set()}
        status, said = self.compared([result("A", "no EVAL"), result("B", "ok")], known)
        self.assertEqual(status, 0)
        self.assertIn("works now, server, though the page says no: B: s", said)


class Page(unittest.TestCase):
    def test_counts_and_reasons(self):
        found = [
            result("A", "ok", "ok"),
            result("B", "unknown command: XADD", needs="streams"),
            result("C", "ok", "ModuleNotFoundError: No module named 'a_b'"),
        ]
        text = page.page({"redis": "7.0.15", "rows": found})
        self.assertIn("2 of 3 scenarios work on the server, 1 of 2 in process.", text)
        self.assertIn("| A | 1 | s \\* | yes | yes |  |", text)
        self.assertIn("| B | 1 | s \\* | **no** | - | unknown command: XADD; needs streams |", text)
        self.assertIn("| yes | **no** | ModuleNotFoundError: No module named 'a\\_b' |", text)

    def test_the_committed_page_has_the_committed_results(self):
        with open(page.RESULTS) as file:
            results = harness.json.load(file)
        with open(page.PAGE) as file:
            self.assertEqual(file.read(), page.page(results))
        names = ["%(program)s: %(scenario)s" % row for row in results["rows"]]
        self.assertEqual(names, [row.name for row in rows.ROWS])


class Rows(unittest.TestCase):
    def test_every_scenario_in_python_has_a_pool_or_a_reason_why_not(self):
        apart = {row.program for row in rows.ROWS if row.file.startswith("python/") and not row.in_process}
        self.assertEqual(apart, set(rows.NO_POOL))
        text = page.page({"redis": "7.0.15", "rows": [result("kombu", "ok"), result("A", "ok", "ok")]})
        self.assertIn("\n- kombu: " + rows.NO_POOL["kombu"], text)
        self.assertNotIn("\n- Celery", text)

    def test_every_row_names_a_scenario_and_a_pinned_version(self):
        for row in rows.ROWS:
            file = "rust/src/main.rs" if row.file == "rust" else row.file
            text = environments.read(*file.split("/"))
            self.assertRegex(text, r"(def|fn|async) %s\b" % row.function, row.name)
            environment = environments.environments("none")[row.environment]
            if row.environment != "ruby":
                self.assertTrue(environment.version(row.package)[0].isdigit(), row.name)
        self.assertEqual(len({row.name for row in rows.ROWS}), len(rows.ROWS))

    def test_no_pinned_file_names_an_address(self):
        for name in ("python/current.txt", "python/older.txt"):
            self.assertNotIn("://", environments.read(*name.split("/")), name)
        self.assertNotIn('"resolved"', environments.read("node", "package-lock.json"))


if __name__ == "__main__":
    unittest.main()
