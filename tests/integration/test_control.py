"""Goal: the control thread answers commands about the whole process however busy the listening thread is, and until the
last client is gone.

Method: clients that connect and leave all the time while CONFIG, INFO, HEAT, SIGHUP and SHUTDOWN are sent and their
effects are checked. For the end of the process, one client keeps a request unfinished, so that its connection
outlives SIGTERM for as long as the test needs.
"""

import os
import signal
import sys
import threading
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

import resp
import servers
from cases import FolderCase
from checks import client_rows, wait_for

ROUNDS = 40
VISITORS = 4


class Visitors:
    """Threads that connect, increment a counter and disconnect, until they are told to stop."""

    def __init__(self, server):
        self.port = server.port
        self.stop = threading.Event()
        self.answers = set()  # the set of replies received
        self.visits = [0] * VISITORS
        self.threads = [threading.Thread(target=self.visit, args=(number,))
                        for number in range(VISITORS)]

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.stop.set()
        for thread in self.threads:
            thread.join()

    def visit(self, number):
        while not self.stop.is_set():
            try:
                with resp.Connection(self.port) as connection:
                    if self.visits[number] % 3:  # every third one disconnects without a request
                        connection.call("INCR", "visits:%d" % number)
                        self.answers.add(connection.call("PING").raw)
            except (OSError, resp.Closed):
                pass  # refused at maxclients, or the server has ended: the test checks which
            self.visits[number] += 1

    def everybody_came(self, times):
        return min(self.visits) >= times


def info(connection, *sections):
    lines = connection.call("INFO", *sections).text.decode().split("\r\n")
    return dict(line.partition(":")[::2] for line in lines if ":" in line)


class Busy(FolderCase):
    def start(self, *args):
        path = self.path("heatsink.conf")
        with open(path, "w", encoding="ascii") as file:
            file.write("slowlog-max-len 50\n")
        server = servers.Heatsink("--config", path, "--workers", "2", "--sync", "off", *args)
        self.addCleanup(server.close)
        return server, path

    def test_the_thread_has_its_name(self):
        server, _ = self.start()
        server.raw().call("INFO")
        tasks = "/proc/%d/task" % server.pid
        names = []
        for task in os.listdir(tasks):
            with open(os.path.join(tasks, task, "comm"), encoding="ascii") as name:
                names.append(name.read().strip())
        self.assertEqual(names.count("control"), 1, names)

    def test_answers_while_clients_come_and_go(self):
        server, path = self.start()
        connection = server.raw()
        with Visitors(server) as visitors:
            for at in range(ROUNDS):
                self.assertIn("process_id", info(connection, "everything"))
                self.assertFalse(connection.call("HEAT", "TOP").is_error)
                self.assertFalse(connection.call("HEAT", "PARTITIONS").is_error)
                length = str(100 + at)
                reply = connection.call("CONFIG", "SET", "slowlog-max-len", length)
                self.assertEqual(reply.raw, b"+OK\r\n")
                reply = connection.call("CONFIG", "GET", "slowlog-max-len")
                self.assertEqual(reply.items[1].text.decode(), length)
                self.assertEqual(connection.call("CONFIG", "RESETSTAT").raw, b"+OK\r\n")
            with open(path, "w", encoding="ascii") as file:
                file.write("slowlog-max-len 77\n")
            server.signal(signal.SIGHUP)
            wait_for(self, "the file is read again", lambda: connection.call(
                "CONFIG", "GET", "slowlog-max-len").items[1].text == b"77")
            wait_for(self, "visitors", lambda: visitors.everybody_came(10))
            connection.send(resp.encode("SHUTDOWN"))
            self.assertEqual(connection.read_to_end(), b"")
            self.assertEqual(server.wait(), 0)
        self.assertEqual(visitors.answers, {b"+PONG\r\n"})

    def test_a_new_limit_holds_from_its_answer_on(self):
        server, _ = self.start()
        connection = server.raw()
        with Visitors(server):
            for _ in range(ROUNDS):
                self.assertEqual(connection.call("CONFIG", "RESETSTAT").raw, b"+OK\r\n")
                self.assertEqual(connection.call("CONFIG", "SET", "maxclients", "1").raw,
                                 b"+OK\r\n")
                with resp.Connection(server.port) as refused:
                    self.assertEqual(refused.read_to_end(),
                                     b"-ERR max number of clients reached\r\n")
                self.assertGreaterEqual(int(info(connection, "stats")["rejected_connections"]), 1)
                self.assertEqual(connection.call("CONFIG", "SET", "maxclients", "1000").raw,
                                 b"+OK\r\n")
                with resp.Connection(server.port) as accept_client:
                    self.assertEqual(accept_client.call("PING").raw, b"+PONG\r\n")

    def test_concurrent_shutdowns(self):
        """A second signal ends the server at once; a second SHUTDOWN changes nothing."""
        server, _ = self.start()
        connections = [server.raw() for _ in range(10)]
        for connection in connections:
            connection.call("PING")
        for connection in connections:
            connection.send(resp.encode("SHUTDOWN"))
        for connection in connections:
            self.assertEqual(connection.read_to_end(), b"")
        self.assertEqual(server.wait(), 0)


class Ending(unittest.TestCase):
    """The last client keeps a request unfinished, so every thread must run until it is answered."""

    def setUp(self):
        self.server = servers.Heatsink("--workers", "2", "--shutdown-timeout", "600")
        self.addCleanup(self.server.close)
        self.first, self.last = self.server.raw(), self.server.raw()
        self.first.call("PING")
        rows = {row["addr"]: row["worker"] for row in client_rows(self.last)}
        self.assertNotEqual(rows[self.first.address], rows[self.last.address])

    def say(self, *requests):
        """Sends each request with the first byte of the next, so that one is always unfinished; returns the replies."""
        replies = []
        for request in requests:
            self.last.send(resp.encode(*request)[1:] + b"*")
            replies.append(self.last.read())
        return replies

    def stop_but_for_the_last(self):
        self.last.send(b"*")
        self.assertEqual(self.say(["PING"])[0].raw, b"+PONG\r\n")
        self.server.signal(signal.SIGTERM)
        self.assertEqual(self.first.read_to_end(), b"")
        wait_for(self, "the first is gone", lambda: b"connected_clients:1\r\n" in
                 self.say(["INFO", "clients"])[0].text)

    def end(self):
        self.last.send(resp.encode("PING")[1:])
        self.assertEqual(self.last.read_to_end(), b"+PONG\r\n")
        self.assertEqual(self.server.wait(), 0)

    def test_control_answers_the_last_client(self):
        self.stop_but_for_the_last()
        for _ in range(ROUNDS):
            replies = self.say(["INFO"], ["HEAT", "PARTITIONS"], ["CONFIG", "RESETSTAT"],
                               ["CONFIG", "SET", "requirepass", ""])
            self.assertIn(b"connected_clients:1\r\n", replies[0].text)
            self.assertIn(b"store-000", replies[1].raw)
            self.assertEqual([reply.raw for reply in replies[2:]], [b"+OK\r\n"] * 2)
        self.end()

    def test_a_worker_without_clients_answers_the_other(self):
        """The worker without clients must not end while the other worker's client is there."""
        self.stop_but_for_the_last()
        for _ in range(3):
            self.assertEqual(self.say(["DEBUG", "SLEEP", "0.1"])[0].raw, b"+OK\r\n")
            self.assertIn(b"cmd=client|list", self.say(["CLIENT", "LIST"])[0].text)
        self.end()

    def test_shutdown_during_shutdown(self):
        self.stop_but_for_the_last()
        self.last.send(resp.encode("SHUTDOWN")[1:] + b"*")
        self.end()


if __name__ == "__main__":
    unittest.main()
