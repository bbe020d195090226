"""Goal: the tests' own servers (tests/lib/servers.py) start on free ports, answer, restart with their data, and end.

Method: a mistake here would make every other test unreliable, so these helpers are tried on redis-server, whose
behaviour is known, on heatsink, and on programs that misbehave on purpose.
"""
import contextlib
import io
import os
import signal
import socket
import sys
import unittest
from unittest import mock

from servers import Heatsink, Process, Redis, ReservedPort

RUN_ONCE = True


class RedisServer(unittest.TestCase):
    def test_answers_and_stops(self):
        with Redis() as server:
            self.assertEqual(server.client().ping(), True)
            self.assertEqual(server.raw().call("SET", "a", "1").raw, b"+OK\r\n")
            self.assertEqual(server.raw().call("GET", "a").raw, b"$1\r\n1\r\n")
            self.assertEqual(server.stop(), 0)
            self.assertFalse(server.running())

    def test_two_at_once_have_their_own_ports_and_folders(self):
        with Redis() as one, Redis() as two:
            self.assertNotEqual(one.port, two.port)
            self.assertNotEqual(one.data, two.data)
            one.client().set("a", "1")
            self.assertIsNone(two.client().get("a"))

    def test_restart_keeps_the_folder_and_close_removes_it(self):
        with Redis("--appendonly", "yes", "--appendfsync", "always") as server:
            server.client().set("a", "1")
            self.assertEqual(server.kill9(), -signal.SIGKILL)
            server.start()
            self.assertEqual(server.client().get("a"), b"1")
        self.assertFalse(os.path.exists(server.data))

    def test_cluster_of_one(self):
        with Redis(cluster=True) as server:
            self.assertIn(b"cluster_state:ok", server.raw().call("CLUSTER", "INFO").raw)
            self.assertEqual(server.raw().call("SET", "a", "1").raw, b"+OK\r\n")


    def test_a_taken_port_is_retried_with_a_note(self):
        with socket.socket() as other:
            other.bind(("127.0.0.1", 0))
            other.listen()
            taken = mock.Mock(number=other.getsockname()[1])
            ports = [taken, ReservedPort(), ReservedPort(), ReservedPort()]
            with mock.patch("servers.ReservedPort", side_effect=ports), \
                    contextlib.redirect_stderr(io.StringIO()) as said, Redis() as server:
                self.assertEqual(server.port, ports[2].number)
                self.assertTrue(server.client().ping())
        self.assertRegex(said.getvalue(), r"\nnote: a port was taken")


class HeatsinkServer(unittest.TestCase):
    def test_answers_and_stops(self):
        with Heatsink() as server:
            self.assertEqual(server.client().ping(), True)
            self.assertEqual(server.raw().call("ECHO", "a").raw, b"$1\r\na\r\n")
            self.assertEqual(server.stop(), 0)
        self.assertFalse(os.path.exists(server.data))

    def test_restart_keeps_the_data(self):
        with Heatsink() as server:
            server.client().set("a", "1")
            self.assertEqual(server.kill9(), -signal.SIGKILL)
            server.start()
            self.assertEqual(server.client().get("a"), b"1")
            port = server.port
            self.assertEqual(server.stop(), 0)
            server.start(same_port=True)
            self.assertEqual(server.port, port)
            self.assertEqual(server.client().get("a"), b"1")

    def test_a_refused_start_shows_the_log(self):
        with self.assertRaisesRegex(AssertionError, "no-such-option"):
            Heatsink("--no-such-option", "1")

    def test_an_alarm_in_the_log_fails_the_test(self):
        server = Heatsink()
        server.log.append("heatsink: impossible state at x.c:1: a == b")
        with self.assertRaisesRegex(AssertionError, "impossible state"):
            server.close()
        self.assertFalse(server.running())


class Misbehaving(unittest.TestCase):
    def test_a_program_that_ends_early_shows_its_output(self):
        process = Process([sys.executable, "-c", "print('no such option'); raise SystemExit(3)"])
        with self.assertRaisesRegex(AssertionError, "no such option"):
            process.wait_log("listening on")
        self.assertEqual(process.wait(), 3)

    def test_a_line_logged_before_the_wait_is_found(self):
        process = Process([sys.executable, "-c", "print('one'); print('two 42')"])
        process.wait_log("two")
        self.assertEqual(process.wait_log(r"two (\d+)").group(1), "42")
        self.assertEqual(process.wait_log("one").group(), "one")
        self.assertEqual(process.wait(), 0)


if __name__ == "__main__":
    unittest.main()
