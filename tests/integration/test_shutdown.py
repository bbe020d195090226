"""Goal: the server ends when it is asked to, and answers requests in flight first.

Method: SHUTDOWN and signals at moments that are known from another observation; then the test checks the exit status,
the last bytes of every connection, and the data after a restart.
"""

import os
import signal
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

import resp
import servers
from checks import wait_for


class Shutdown(unittest.TestCase):
    def test_shutdown_command(self):
        for words in (["SHUTDOWN"], ["SHUTDOWN", "NOSAVE"], ["shutdown", "save"]):
            with self.subTest(words), servers.Heatsink() as server:
                connection = server.raw()
                connection.call("SET", "kept", "1")
                connection.send(resp.encode(*words))
                self.assertEqual(connection.read_to_end(), b"")
                self.assertEqual(server.wait(), 0)

    def test_a_sleeper_is_not_waited_for_beyond_the_timeout(self):
        with servers.Heatsink("--shutdown-timeout", "0") as server:
            sleeper, other = server.raw(), server.raw()
            sleeper.send(resp.encode("DEBUG", "SLEEP", "600"))
            wait_for(self, "the sleeper", lambda: b"cmd=debug|sleep" in other.call("CLIENT", "LIST").text)
            server.signal(signal.SIGTERM)
            self.assertEqual(server.wait(), 0)

    def test_shutdown_errors(self):
        with servers.Heatsink() as server:
            connection = server.raw()
            self.assertEqual(connection.call("SHUTDOWN", "MAYBE").raw, b"-ERR syntax error\r\n")
            self.assertEqual(connection.call("SHUTDOWN", "SAVE", "NOSAVE").raw,
                             b"-ERR syntax error\r\n")
            self.assertEqual(connection.call("SHUTDOWN", "ABORT").raw,
                             b"-ERR No shutdown in progress.\r\n")
            self.assertEqual(connection.call("PING").raw, b"+PONG\r\n")

    def test_sigterm_answers_what_is_in_flight(self):
        """SIGTERM comes when the first write of a pipeline is visible, so the whole pipeline has been read."""
        count = 300
        with servers.Heatsink("--workers", "2", "--sync", "always",
                              "--shutdown-timeout", str(servers.GUARD_S)) as server:
            connection, watcher = server.raw(), server.raw()
            connection.send(resp.encode("SET", "first", "1") + b"".join(
                resp.encode("SET", "k%d" % at, at) for at in range(count)))
            wait_for(self, "the first write", lambda: watcher.call("EXISTS",
                                                                   "first").raw == b":1\r\n")
            server.signal(signal.SIGTERM)
            self.assertEqual(connection.read_to_end(), b"+OK\r\n" * (count + 1))
            self.assertEqual(server.wait(), 0)
            server.start()
            client = server.client()
            self.assertEqual([client.get("k%d" % at) for at in range(count)],
                             [b"%d" % at for at in range(count)])

    def test_sigterm_with_idle_connections(self):
        with servers.Heatsink("--workers", "2") as server:
            idle = [server.raw() for _ in range(10)]
            for connection in idle:
                connection.call("PING")
            server.signal(signal.SIGTERM)
            self.assertEqual(server.wait(), 0)
            for connection in idle:
                self.assertEqual(connection.read_to_end(), b"")

    def test_second_sigterm_exits_at_once(self):
        """The first SIGTERM waits for a sleeping request; the second ends the server at once."""
        with servers.Heatsink("--workers", "1", "--shutdown-timeout", "600") as server:
            sleeper, watcher = server.raw(), server.raw()
            sleeper.send(resp.encode("SET", "asleep", "1") + resp.encode("DEBUG", "SLEEP", "600"))
            wait_for(self, "it sleeps", lambda: watcher.call("EXISTS", "asleep").raw == b":1\r\n")
            self.assertEqual(sleeper.read().raw, b"+OK\r\n")
            server.signal(signal.SIGTERM)
            self.assertTrue(watcher.is_closed())
            self.assertTrue(server.running())
            server.signal(signal.SIGTERM)
            server.wait()
            self.assertEqual(sleeper.read_to_end(), b"")


if __name__ == "__main__":
    unittest.main()
