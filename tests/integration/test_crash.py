"""Goal: after repeated kill -9 under write load, every acknowledged write is there after the restart, none applied
twice, none half applied.

Method: threads write numbered values, each thread with another command. After the restart the store must hold a
number between the last one acknowledged and the last one sent. The redo log is small, so that checkpoints happen
during the test.
"""

import os
import random
import sys
import threading
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

import resp
import servers
from checks import GUARD_S, wait_for


class Writer(threading.Thread):
    """Writes growing numbers until its connection dies. Afterwards the store must hold a number between the last
    acknowledged and the last sent one."""

    def __init__(self, port, name, start):
        super().__init__(daemon=True)
        self.connection = resp.Connection(port)
        self.key = name
        self.sent = self.acknowledged = start
        self.failure = None

    def requests(self, number):
        raise NotImplementedError

    def accept(self, replies):
        raise NotImplementedError

    def found(self, client):
        """The number that the store holds; -1 if a write was half applied."""
        raise NotImplementedError

    def run(self):
        try:
            while True:
                self.sent += 1
                data = self.requests(self.sent)
                self.connection.send(b"".join(data))
                replies = [self.connection.read() for _ in data]
                if not self.accept(replies):
                    self.failure = "%s: %r" % (self.key, replies)
                    return
                self.acknowledged = self.sent
        except (OSError, resp.Closed):
            pass
        finally:
            self.connection.close()


class SetWriter(Writer):
    """SET in pipelines over five keys in different slots."""

    def requests(self, number):
        return [resp.encode("SET", "%s:%d" % (self.key, at), number) for at in range(5)]

    def accept(self, replies):
        return all(reply.raw == b"+OK\r\n" for reply in replies)

    def found(self, client):
        values = [int(client.get("%s:%d" % (self.key, at)) or 0) for at in range(5)]
        return min(values) if max(values) <= self.sent else -1


class CountWriter(Writer):
    """INCR: the reply must be the number, so an increment applied twice is found."""

    def requests(self, number):
        return [resp.encode("INCR", self.key)]

    def accept(self, replies):
        return replies[0].raw == b":%d\r\n" % self.sent

    def found(self, client):
        return int(client.get(self.key) or 0)


class PairWriter(Writer):
    """MSET of keys in one slot."""

    def requests(self, number):
        return [resp.encode("MSET", "{%s}a" % self.key, number, "{%s}b" % self.key, number,
                            "{%s}c" % self.key, "x" * 3000 + str(number))]

    def accept(self, replies):
        return replies[0].raw == b"+OK\r\n"

    def found(self, client):
        one, two, three = client.mget(["{%s}%s" % (self.key, name) for name in "abc"])
        if one != two or (three or b"").lstrip(b"x") != (one or b""):
            return -1
        return int(one or 0)


class ExecWriter(Writer):
    """A transaction that counts one key up and another down."""

    def requests(self, number):
        return [resp.encode("MULTI"), resp.encode("INCR", "{%s}up" % self.key),
                resp.encode("DECR", "{%s}down" % self.key),
                resp.encode("SET", "{%s}last" % self.key, number),
                resp.encode("EXEC")]

    def accept(self, replies):
        return replies[4].raw == b"*3\r\n:%d\r\n:-%d\r\n+OK\r\n" % (self.sent, self.sent)

    def found(self, client):
        up, down, last = [int(value or 0) for value in client.mget(
            ["{%s}%s" % (self.key, name) for name in ("up", "down", "last")])]
        return up if up == -down == last else -1


class KillNine(unittest.TestCase):
    KINDS = [SetWriter, SetWriter, CountWriter, CountWriter, PairWriter, ExecWriter]

    def check(self, rounds, sync):
        numbers = [0] * len(self.KINDS)
        with servers.Heatsink("--workers", "2", "--partitions", "4", "--sync", sync,
                              "--log-size", "256kb") as server:
            for turn in range(rounds):
                writers = [kind(server.port, "w%d" % at, numbers[at])
                           for at, kind in enumerate(self.KINDS)]
                for writer in writers:
                    writer.start()
                enough = random.Random(turn).randrange(20, 150)
                wait_for(self, "acknowledged writes", lambda: all(
                    writer.failure or writer.acknowledged >= number + enough
                    for writer, number in zip(writers, numbers)))
                server.kill9()
                for writer in writers:
                    writer.join(GUARD_S)
                    self.assertIsNone(writer.failure)
                server.start()
                if turn % 2:  # killed again before any request
                    server.kill9()
                    server.start()
                numbers = [self.found(writer, server.client(), turn) for writer in writers]
            self.assertEqual(server.stop(), 0)

    def found(self, writer, client, turn):
        """The writer's number in the store, checked against the last acknowledged and the last sent number."""
        number = writer.found(client)
        self.assertTrue(
            writer.acknowledged <= number <= writer.sent,
            "round %d, %s: acknowledged %d, found %d, sent %d" % (
                turn, type(writer).__name__, writer.acknowledged, number, writer.sent))
        return number

    def test_acknowledged_writes_survive(self):
        self.check(6, "always")

    def test_a_killed_process_loses_nothing_without_sync(self):
        self.check(4, "off")


if __name__ == "__main__":
    unittest.main()
