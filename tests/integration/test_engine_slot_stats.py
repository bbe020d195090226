"""Goal: if a master answers CLUSTER SLOT-STATS, HEAT PARTITIONS shows the rates of its counters; when they start
again, or the server was away, no wrong rate appears. A master without the command is asked once, and once more on
each new connection. A single server that is no Cluster is never asked.

Method: a real Cluster whose servers are too old for the command, with a relay in front of each. One relay answers the
command with counters that grow in a known proportion with every request. Rows are read all the time, and each must be
zero or show that proportion, however long the time between two requests.
"""
import threading
import unittest

from cluster import Cluster
from relay import Relay
from servers import Heatsink, Redis

ASK = "CLUSTER SLOT-STATS"
LONG_AGO = 10 ** 13  # start value of the counters: counted before heatsink's first request
LOOKS = 7            # INFO requests to wait for, one per second: longer than the interval of CLUSTER SLOT-STATS


def bulk(text):
    return f"${len(text)}\r\n{text}\r\n"


class Teller:
    """A server's answer; the counters grow by `grow` (µs, bytes in, bytes out) with each request."""

    def __init__(self, keys, grow):
        self.lock = threading.Lock()
        self.keys, self.counts, self.grow = keys, [LONG_AGO] * 3, grow

    def __call__(self):
        with self.lock:
            self.counts = [count + more for count, more in zip(self.counts, self.grow)]
            names = ("cpu-usec", "network-bytes-in", "network-bytes-out")
            values = "".join(f"{bulk(name)}:{count}\r\n"
                             for name, count in zip(names, self.counts))
            return (f"*2\r\n*2\r\n:0\r\n*8\r\n{bulk('key-count')}:{self.keys}\r\n{values}"
                    f"*2\r\n:1\r\n*2\r\n{bulk('key-count')}:1\r\n").encode()

    def become(self, counts, grow):
        with self.lock:
            self.counts, self.grow = [counts] * 3, grow


class TestSlotStats(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(masters=2, replicas=0, relays=True)
        cls.addClassCleanup(cls.cluster.close)

    def start(self):
        self.connections = {node.relay: node.relay.accepted for node in self.cluster.nodes}
        self.server = Heatsink("--engine", self.cluster.url())
        self.addCleanup(self.server.close)
        self.server.wait_engine()
        self.client = self.server.client()

    def answer(self, *args, **options):
        fault = self.cluster.nodes[0].relay.answer(*args, **options)
        self.addCleanup(fault.remove)

    def asked(self, relay):
        """The connections since start() that carried the request. The caller holds the relay's lock."""
        return [number for number, args in relay.requests
                if args[:2] == ASK.encode().split() and number > self.connections[relay]]

    def assert_asked_once(self, relay):
        """One request per connection at most; a busy machine may lose a connection and open another."""
        relay.wait("asked", self.asked)
        with relay.change:
            asked = self.asked(relay)
        self.assertEqual(len(asked), len(set(asked)))

    def rows(self):
        rows = [dict(zip(row[0::2], row[1::2])) for row in
                self.client.execute_command("HEAT", "PARTITIONS")]
        by_address = {row[b"address"].decode(): row for row in rows if row[b"id"] != b"median"}
        return [[float(by_address[node.address][name])
                 for name in (b"slots_cpu", b"net_in", b"net_out")] for node in self.cluster.nodes]

    def is_like(self, row, grow):
        """True if bytes per second of command time are in the proportion of `grow`."""
        cpu_s = grow[0] / 1e6
        return row[0] > 0 and all(
            abs(rate / row[0] - more / cpu_s) <= 0.05 * more / cpu_s
            for rate, more in zip(row[1:], grow[1:]))

    def wait_like(self, grow, *before):
        """Waits for this proportion; until then the row must be zero or in one of the proportions `before`."""
        def found():
            row, other = self.rows()
            self.assertEqual(other, [0, 0, 0])
            self.assertTrue(row == [0, 0, 0] or
                            any(self.is_like(row, each) for each in (grow, *before)), row)
            return self.is_like(row, grow)
        self.cluster.wait(f"a rate like {grow}", found)

    def test_rates(self):
        first, second, third = ((1000000, 4000000, 8000000), (1000000, 6000000, 2000000),
                                (2000000, 2000000, 1000000))
        teller = Teller(10, first)
        told, plain = (node.relay for node in self.cluster.nodes)
        self.answer(b"-BUSY Redis is busy running a script.\r\n", ASK)  # once: a temporary refusal
        self.answer(teller, ASK, times=None)
        self.start()
        self.wait_like(first)
        teller.become(0, second)  # as after CONFIG RESETSTAT
        self.wait_like(second, first)
        self.assert_asked_once(plain)
        told.refuse()  # so that no request comes until listen()
        told.cut_all()
        teller.become(2 * LONG_AGO, third)
        told.listen()
        asked = plain.count(ASK)
        plain.cut_all()
        self.wait_like(third, second)
        plain.wait("asked again", lambda relay: relay.count(ASK) > asked)
        self.assert_asked_once(plain)

    def test_keys_of_a_server_that_does_not_tell_info(self):
        self.answer(b"-NOPERM this user has no permissions\r\n", "INFO", times=None)
        self.answer(Teller(41, [0, 0, 0]), ASK, times=None)
        self.start()
        self.cluster.wait("its keys are told", lambda: self.client.info("keyspace") ==
                          {"db0": {"keys": 42, "expires": 0, "avg_ttl": 0}})

    def test_without_permission_it_asks_once(self):
        relay = self.cluster.nodes[0].relay
        informed = relay.count("INFO")
        self.answer(b"-NOPERM this user has no permissions\r\n", ASK, times=None)
        self.start()
        relay.wait("looks", lambda relay: relay.count("INFO") >= informed + LOOKS)
        self.assert_asked_once(relay)

    def test_one_server_is_not_asked(self):
        with Redis() as redis, Relay(redis.port) as relay, \
                Heatsink("--engine", f"redis://127.0.0.1:{relay.port}"):
            relay.wait("looks", lambda relay: relay.count("INFO") >= LOOKS)
            self.assertEqual(relay.count(ASK), 0)


if __name__ == "__main__":
    unittest.main()
