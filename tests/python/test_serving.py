"""A store that this program serves to other processes."""

import os
import socket
import subprocess
import sys
import tempfile
import threading
import unittest

import lsmkv


class Serving(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.socket = os.path.join(scratch.name, "s")
        self.db = lsmkv.open(os.path.join(scratch.name, "store"))
        self.addCleanup(self.db.close)

    def test_another_process_uses_the_store_that_this_one_has_open(self):
        program = (
            "import lsmkv, sys\n"
            "with lsmkv.open(sys.argv[1]) as db:\n"
            "    db.incrby('n', 5)\n"
            "    db.rpush('queue', db.get('from'))\n"
            "    db.publish('news', 'hello')\n"
        )
        self.db.set("from", "here")
        with self.db.serve("unix:" + self.socket) as server, self.db.pubsub() as channels:
            channels.subscribe("news")
            self.assertEqual(channels.get_message()["type"], "subscribe")
            paths = os.pathsep.join(path for path in sys.path if path)
            subprocess.run(
                [sys.executable, "-c", program, server.address],
                check=True, timeout=60, env={**os.environ, "PYTHONPATH": paths},
            )
            self.assertEqual(channels.get_message(5)["data"], b"hello")
        self.assertEqual(self.db.get("n"), b"5")
        self.assertEqual(self.db.blpop("queue", 1), (b"queue", b"here"))
        self.assertFalse(os.path.exists(self.socket))

    def test_a_client_waits_for_a_push_of_this_process(self):
        with self.db.serve("tcp:127.0.0.1:0", password="secret", threads=1) as server:
            self.assertEqual(server.address, "redis://127.0.0.1:%d" % server.port)
            with socket.create_connection(("127.0.0.1", server.port), 10) as client:
                client.sendall(b"BLPOP queue 0\r\n")
                self.assertTrue(client.recv(100).startswith(b"-NOAUTH"))
                client.sendall(b"AUTH secret\r\nBLPOP queue 0\r\n")
                self.assertEqual(client.recv(100), b"+OK\r\n")
                threading.Timer(0.02, self.db.rpush, ("queue", "job")).start()
                self.assertEqual(client.recv(100), b"*2\r\n$5\r\nqueue\r\n$3\r\njob\r\n")

    def test_what_cannot_be_served_is_an_error_that_says_why(self):
        with self.assertRaisesRegex(lsmkv.InvalidError, "unix:PATH, tcp:HOST:PORT"):
            self.db.serve("nowhere")
        with self.assertRaisesRegex(lsmkv.InvalidError, "server_password"):
            self.db.serve("tcp:0.0.0.0:0")
        with self.assertRaisesRegex(lsmkv.InvalidError, "server_threads"):
            self.db.serve("tcp:127.0.0.1:0", thread=1)
        with self.assertRaises(ValueError):
            self.db.serve("unix:a\0b")
        with self.db.serve("unix:" + self.socket):
            with self.assertRaises(lsmkv.BusyError):
                self.db.serve("unix:" + self.socket)

    def test_closing_the_store_stops_the_server(self):
        server = self.db.serve("tcp:127.0.0.1:0")
        with socket.create_connection(("127.0.0.1", server.port), 10) as client:
            client.sendall(b"PING\r\n")
            self.assertEqual(client.recv(100), b"+PONG\r\n")
            self.db.close()
            self.assertEqual(client.recv(1), b"")
        server.stop()
        server.stop()
        with self.assertRaises(lsmkv.MisuseError):
            server.port


if __name__ == "__main__":
    unittest.main()
