"""Goal: INFO commandstats counts commands inside a transaction as Redis does: each command once, failed ones as failed,
and none of a transaction that was not executed.

Method: the same commands are sent to a redis-server and to heatsink, with the embedded engine and in front of a
server; the calls and failed calls of each command are compared.
"""

import os
import re
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

import servers

SANITIZERS = ("address",)  # one client at a time: no data race is possible

STEPS = """
    SET {t}a x|MULTI|SET {t}b 1|INCR {t}b|INCR {t}a|GET {t}b|PING|EXEC|MULTI|SET {t}b 1|DISCARD
    WATCH {t}a|MULTI|GET {t}a|EXEC|MULTI|EXEC|EXEC|MULTI|INCR|SET {t}b 2|EXEC
    MULTI|MGET {t}a {t}b|PUBLISH c x|EXEC
    MULTI|SET {t}a 2|SSUBSCRIBE {t}c|EXEC|RESET
"""
NAMES = "set incr get mget ping exec multi discard watch publish ssubscribe reset".split()


class Counted(unittest.TestCase):
    def counts(self, server):
        connection = server.raw()
        connection.call("CONFIG", "RESETSTAT")
        for line in STEPS.strip().splitlines():
            for words in line.strip().split("|"):
                connection.call(*words.split())
        text = connection.call("INFO", "commandstats").text.decode()
        found = {}
        for name, calls, failed in re.findall(
                r"cmdstat_(\w+):calls=(\d+),.*failed_calls=(\d+)", text):
            found[name] = int(calls), int(failed)
        return {name: found.get(name) for name in NAMES}

    def check(self, *args):
        redis = self.enterContext(servers.Redis())
        with servers.Heatsink("--workers", "2", *args) as heatsink:
            self.assertEqual(self.counts(heatsink), self.counts(redis))

    def test_on_the_embedded_engine(self):
        self.check("--sync", "off", "--partitions", "1")

    def test_in_front_of_a_server(self):
        behind = self.enterContext(servers.Redis())
        self.check("--engine", f"redis://127.0.0.1:{behind.port}")


if __name__ == "__main__":
    unittest.main()
