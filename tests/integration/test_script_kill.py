"""Goal: SCRIPT KILL and FUNCTION KILL end a script that was started through heatsink, on the same worker and over the
same connections to the servers. They answer as a server does: OK if a script was ended, NOTBUSY only if no server runs
one. Meanwhile other clients get the server's BUSY.

Method: heatsink with one worker in front of a redis-server, then of a Cluster, whose scripts may be killed after a few
milliseconds. The test starts a script that never ends and kills it.
"""

import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

import servers
from checks import wait_for
from cluster import Cluster
from resp import encode

FOREVER = "while true do end"
WRITES = "redis.call('SET', KEYS[1], 1) while true do end"
LIBRARY = f"#!lua name=forever\nredis.register_function('forever', function() {FOREVER} end)"
SOON = ("--lua-time-limit", "10")
PATIENT = ("--engine-timeout", str(servers.GUARD_S * 1000))


def wait_scripts(test, heatsink):
    """Waits until EVAL works: heatsink may start before it has learned the server's commands."""
    connection = heatsink.raw()
    wait_for(test, "scripts run", lambda:
             connection.call("EVAL", "return 1", "1", "key").raw == b":1\r\n")


def wait_busy(test, *nodes):
    """Waits until a server answers BUSY, which means that it runs a script."""
    asked = [node.raw() for node in nodes]
    wait_for(test, "a server is busy", lambda: any(
        connection.call("GET", "x").raw.startswith(b"-BUSY") for connection in asked))


class OneServer(unittest.TestCase):
    @classmethod
    def engine(cls):
        cls.nodes = [cls.enterClassContext(servers.Redis(*SOON))]
        return f"redis://127.0.0.1:{cls.nodes[0].port}"

    @classmethod
    def setUpClass(cls):
        cls.heatsink = cls.enterClassContext(servers.Heatsink(
            "--workers", "1", *PATIENT, "--engine", cls.engine()))

    def setUp(self):
        wait_scripts(self, self.heatsink)

    def start(self, *words):
        connection = self.heatsink.raw()
        connection.send(encode(*words))
        wait_busy(self, *self.nodes)
        return connection

    def killed(self, kill, *words):
        """The replies to the kill and to the script."""
        running = self.start(*words)
        said = self.heatsink.raw().call(*kill).raw
        return said, running.read().raw

    def test_nothing_to_kill(self):
        for words in (("SCRIPT", "KILL"), ("FUNCTION", "KILL")):
            self.assertEqual(self.heatsink.raw().call(*words).raw,
                             b"-NOTBUSY No scripts in execution right now.\r\n")

    def test_script(self):
        for _ in range(3):
            said, script = self.killed(("SCRIPT", "KILL"), "EVAL", FOREVER, "1", "key")
            self.assertEqual(said, b"+OK\r\n")
            self.assertIn(b"killed by user", script)
        self.assertEqual(self.heatsink.raw().call("SET", "key", 1).raw, b"+OK\r\n")

    def test_function(self):
        asker = self.heatsink.raw()
        self.assertFalse(asker.call("FUNCTION", "LOAD", "REPLACE", LIBRARY).is_error)
        said, script = self.killed(("FUNCTION", "KILL"), "FCALL", "forever", "1", "key")
        self.assertEqual(said, b"+OK\r\n")
        self.assertIn(b"killed by user", script)

    def test_the_wrong_word(self):
        running = self.start("EVAL", FOREVER, "1", "key")
        asker = self.heatsink.raw()
        self.assertTrue(asker.call("FUNCTION", "KILL").raw.startswith(b"-BUSY"))
        self.assertEqual(asker.call("SCRIPT", "KILL").raw, b"+OK\r\n")
        running.read()


class InFrontOfACluster(OneServer):
    @classmethod
    def engine(cls):
        cluster = cls.enterClassContext(Cluster(masters=3, replicas=0, args=SOON))
        cls.nodes = cluster.nodes
        return cluster.url()


class Unkillable(unittest.TestCase):
    def test_a_script_that_wrote(self):
        """A script that has written cannot be killed, as with the server alone, so the test kills the server."""
        server = self.enterContext(servers.Redis(*SOON))
        with servers.Heatsink("--workers", "1", *PATIENT, "--engine",
                              f"redis://127.0.0.1:{server.port}") as heatsink:
            wait_scripts(self, heatsink)
            running = heatsink.raw()
            running.send(encode("EVAL", WRITES, "1", "key"))
            wait_busy(self, server)
            self.assertTrue(heatsink.raw().call("SCRIPT", "KILL").raw.startswith(b"-UNKILLABLE"))
            server.kill9()


if __name__ == "__main__":
    unittest.main()
