"""Goal: a failing disk costs no acknowledged write: writes are refused with the reason, reads stay right or say why
not, and a restart finds everything or says what is wrong.

Method: clients write numbered values until the server refuses, on volumes that are full below their filesystem, on
filesystems that are shut down or become read-only, and with a library that fails or loses the n-th call
(tests/preload/faults.c). Where the kernel does not let tests create such volumes, only the library is used. The test
prints the numbers of trials, acknowledged, lost, and correctly refused writes.
"""

import os
import random
import sys
import threading
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

import disks
import resp
import servers

ARGS = ("--workers", "2", "--partitions", "2", "--log-size", "256kb", "--store-size", "64mb")
WRITERS = 3


def number_of(value):
    """The number in a value; 0 without a value."""
    return int(value.split(b":")[0]) if value else 0


class Writer(threading.Thread):
    """Sets the keys of one writer to growing numbers, in pipelines, until the server refuses."""

    def __init__(self, port, name, seed, keys):
        super().__init__(daemon=True)
        self.connection = resp.Connection(port, guard_s=servers.GUARD_S)
        self.keys = ["%s:%d" % (name, at) for at in range(keys)]
        self.random = random.Random(seed)
        self.sure = {}     # key: the last number acknowledged
        self.maybe = {}    # key: numbers of unknown outcome since
        self.acknowledged = self.number = 0
        self.refusal = self.failure = None

    def learn(self, key, number, reply):
        if reply.raw == b"+OK\r\n":
            self.sure[key] = number
            self.maybe.pop(key, None)
            self.acknowledged += 1
        elif reply.raw.startswith(b"-MISCONF cannot ") and b"refused until a restart" in reply.raw:
            if b"is unknown" in reply.raw:
                self.maybe.setdefault(key, set()).add(number)
            self.refusal = reply.raw
        else:
            self.failure = "SET %s: %r" % (key, reply)

    def run(self):
        try:
            while not self.refusal and not self.failure:
                batch = []
                for _ in range(self.random.randrange(1, 12)):
                    self.number += 1
                    batch.append((self.random.choice(self.keys), self.number))
                self.connection.send(b"".join(
                    resp.encode("SET", key, b"%d:" % number + b"v" * self.random.randrange(4000))
                    for key, number in batch))
                for key, number in batch:
                    self.learn(key, number, self.connection.read())
        except (OSError, resp.Closed) as error:
            self.failure = "the server is gone: %r" % error
        finally:
            self.connection.close()

    def may_be(self, key, number):
        return number == self.sure.get(key, 0) or number in self.maybe.get(key, ())


class DiskCase(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.figures = dict.fromkeys(
            ("trials", "acknowledged", "lost", "refused", "reads", "refused reads"), 0)

    @classmethod
    def tearDownClass(cls):
        print("%s: %s" % (cls.__name__, ", ".join("%d %s" % (count, name)
                                                  for name, count in cls.figures.items())))

    def check_reads(self, server, writers, restarted):
        connection = server.raw()
        for writer in writers:
            for key in writer.keys:
                reply = connection.call("GET", key)
                if reply.raw.startswith(b"-") and not restarted:
                    self.assertTrue(reply.raw.startswith(b"-MISCONF cannot "), reply)
                    self.assertIn(b"cannot be read until a restart", reply.raw)
                    self.figures["refused reads"] += 1
                    continue
                self.figures["reads"] += 1
                self.assertTrue(writer.may_be(key, number_of(reply.text)), "%s is %r, was %d" % (
                    key, (reply.text or b"")[:20], writer.sure.get(key, 0)))

    def run_trial(self, disk, seed, keys=60):
        try:
            with disk.used():
                self.run_on(disk, seed, keys)
        finally:
            disk.close()

    def run_on(self, disk, seed, keys):
        with servers.Heatsink(*ARGS, data=disk.folder) as server:
            writers = [Writer(server.port, "w%d" % at, seed * WRITERS + at, keys)
                       for at in range(WRITERS)]
            for writer in writers:
                writer.start()
            probe = server.raw()
            for turn in range(seed * 7 % 40):
                self.assertEqual(probe.call("SET", "probe", str(turn)).raw, b"+OK\r\n")
            disk.fail()
            for writer in writers:
                writer.join(servers.GUARD_S)
                self.assertFalse(writer.is_alive(), "writes are never refused")
                self.assertIsNone(writer.failure, server.process.text())
                self.assertIn(disk.folder.encode(), writer.refusal)
                self.figures["refused"] += 1
                self.figures["acknowledged"] += writer.acknowledged
            self.assertTrue(server.running())
            self.check_reads(server, writers, False)
            # Reads and INFO work on, and report the failure.
            connection = server.raw()
            self.assertEqual(connection.call("PING").raw, b"+PONG\r\n")
            self.assertIn(b"readonly", connection.call("HEAT", "PARTITIONS").raw)
            server.wait_log(r"writes are refused until a restart, reads go on")
            if seed % 2:
                server.kill9()
            else:
                self.assertEqual(server.stop(), 0)
            server.check()
            disk.heal()
            server.start()
            self.check_reads(server, writers, True)
            self.assertEqual(server.client().set("after", "1"), True)
            self.figures["trials"] += 1


class Volumes(DiskCase):
    """Real volumes, as far as this kernel allows them. Class Calls has the same trials for every machine."""

    def trials(self, kind, count, keys=60):
        for seed in range(count):
            with self.subTest(kind=kind.__name__, seed=seed):
                try:
                    disk = kind()
                except (disks.Unavailable, OSError) as error:
                    print("note: %s could not run here, test_disk.Calls covers it: %s" % (
                        kind.__name__, error), file=sys.stderr)
                    return
                self.run_trial(disk, seed, keys)

    def test_full_below_the_filesystem(self):
        self.trials(disks.ThinDisk, 4, keys=2000)  # more than there is room for

    def test_shut_down(self):
        self.trials(disks.BrokenDisk, 4)

    def test_becomes_read_only(self):
        self.trials(disks.ReadOnlyDisk, 3)


class Calls(DiskCase):
    """The n-th system call fails, in a library between the server and the C library."""

    def trials(self, kinds, file, steps, **options):
        for seed, nth in enumerate(steps):
            with self.subTest(nth=nth):
                try:
                    disk = disks.LossyDisk(kinds, file, nth, **options)
                except disks.Unavailable as error:
                    print("note: not run: %s; test_embedded_disk has these trials" % error,
                          file=sys.stderr)
                    return
                self.run_trial(disk, seed)

    def test_stores_lose_writes(self):
        self.trials(disks.LossyDisk.WRITE | disks.LossyDisk.LOSE, "/store-", (1, 10, 37, 200))

    def test_stores_lose_one_write(self):
        self.trials(disks.LossyDisk.WRITE | disks.LossyDisk.LOSE, "/store-", (2, 51), times=1)

    def test_writes_of_stores_fail(self):
        self.trials(disks.LossyDisk.WRITE, "/store-", (1, 2, 9, 40))

    def test_meta_pages_fail(self):
        self.trials(disks.LossyDisk.META, "/store-", (1, 4))

    def test_syncs_fail(self):
        self.trials(disks.LossyDisk.SYNC, "", (1, 5, 30, 31), times=1)

    def test_read_only(self):
        self.trials(disks.LossyDisk.WRITE | disks.LossyDisk.SYNC | disks.LossyDisk.RESERVE |
                    disks.LossyDisk.NAME, "", (1, 20, 77), error=30)


if __name__ == "__main__":
    unittest.main()
