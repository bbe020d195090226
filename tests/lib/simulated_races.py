"""Scripts whose replies depend on timing, for tests/integration/test_sim_cluster.py, the two worlds that run them, and
all replies that Redis was seen to give to the lines with a question mark. In addition to the lines of
tests/lib/simulated.py they have:

    moment 400           lets some time pass, of any length: up to 400 µs in the simulation
    takes_over 5         asks node 5 to take over, without waiting for it
    taken_over 5         waits until it has
"""
import random

from resp import encode
from simulated import Simulated
from simulated_faults import RealFaults
from simulated_scripts import BEGIN_MOVE, migrate

# Title: (script, set of possible replies). Each of them was observed with redis-server 7.0.15.
RACES = {
    "a replica that lags": (
        ["connect a 0", "connect r 3", "r: READONLY", "a: SET x@0 1", "sync", "a~ SETRANGE y@0 999999 a ; SET x@0 2",
         "moment 300", "r~ GET x@0", "a? 2", "r? 1"],
        {(b":1000000\r\n+OK\r\n", b"$1\r\n1\r\n"), (b":1000000\r\n+OK\r\n", b"$1\r\n2\r\n")}),
    "a new owner that others have not heard of": (
        ["connect a 0", "connect o 2", "a: SET x@0b 1", *BEGIN_MOVE, migrate("x"),
         "z~ CLUSTER SETSLOT $slot0b NODE $id1", "moment 600", "a~ GET x@0b", "o~ GET x@0b", "z? 1", "a? 1", "o? 1"],
        {(b"+OK\r\n", a, o) for a in (b"ASK 1", b"MOVED 1") for o in (b"MOVED 0", b"MOVED 1")}),
    "a write at a failover": (
        ["connect w 2", "connect r 5", "takes_over 5", "moment 1500", "w~ INCR x@2", "taken_over 5", "w? 1", "agree",
         "sync", "r~ GET x@2", "r? 1"],
        {(b":1\r\n", b"$1\r\n1\r\n"), (b"MOVED 5", b"$-1\r\n")}),
}


def shorten(raw):
    """Shortens "-MOVED 123 <1>" to "MOVED 1"."""
    if raw.startswith((b"-MOVED ", b"-ASK ")):
        word, _, node = raw[1:].split()
        return word + b" " + node.strip(b"<>")
    return raw


def answers(script, heard):
    return tuple(b"".join(map(shorten, raw)) for line, replies in zip(script, heard) if line.split()[0][-1] == "?"
                 for raw in replies.values())


class RealRaces(RealFaults):
    """The seed decides the length of each moment."""

    EXCHANGES = 150  # a moment lasts at most this many PINGs to another node

    def __init__(self, cluster, seed):
        super().__init__(cluster)
        self.draw = random.Random(seed)

    def moment(self, _):
        for _ in range(self.draw.choice((0, 0, 1, 2, self.draw.randint(0, self.EXCHANGES)))):
            self.ask_node(1, "PING")

    def takes_over(self, number):
        node = self.cluster.nodes[int(number)]
        self.wait_known(node)
        self.connections["failover"] = node.connect()
        self.connections["failover"].send(encode("CLUSTER", "FAILOVER"))

    def taken_over(self, number):
        self.wait(self.cluster.nodes[int(number)].is_master)


class SimulatedRaces(Simulated):
    def moment(self, us):
        self.exchange(f"pass {random.Random(self.seed).randint(0, int(us))}")

    def takes_over(self, number):
        self.connect("failover", int(number), False)
        self.send("failover", b"CLUSTER FAILOVER\r\n")
        self.clients.pop("failover")

    def taken_over(self, _):
        self.settle()

    def run_line(self, line):
        """A moment and takes_over have no output: other connections are not read."""
        verb = line.split(" ")[0]
        if verb in ("moment", "takes_over"):
            getattr(self, verb)(line.split(" ")[1])
            return {}
        return super().run_line(line)
