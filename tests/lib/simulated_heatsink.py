"""Runs scripts against heatsink in front of a real Cluster, and against the simulated heatsink in front of the
simulated Cluster (tests/drivers/simulated_heatsink.c). Clients talk to heatsink; behind it slots move and servers
fail. The lines are those of tests/lib/simulated.py and simulated_faults.py without those about one node's state, and:

    connect a [3]           connects to heatsink
    begin_move x@0b 1       starts the migration of the key's slot to node 1
    move x@0b               moves this key
    end_move x@0b           moves all keys of the slot; then node 1 owns it
    behind SET x@0 1        runs a command directly at the server that owns the key
    seen a x@0 1            client a reads the key until it gets this value; its replies are not compared.
                            `*` is any reply except an error
    moment 300              lets up to 300 µs pass in the simulation

The output of a client is compared as one sequence: a push follows the reply that it belongs to with some delay, so a
script says when it waits for one (`a> 1`). The text of an -UNKNOWN error is not compared, because it names the cause
of a lost connection.

Timing decides whether a pipeline on a migrating slot can run in order: if a server redirects one command and runs the
client's next one itself, heatsink refuses the first with "not run". Then the other requests must be answered as if the
refused ones had not been sent (leave_out_refused).
"""
import random
import re
import time

import servers
from cluster import slot_of
from resp import Closed, Connection, encode
from simulated import MASTERS, SLOTS, Bytes, Client, Simulated
from simulated_faults import RealFaults

# The node number noted for clients of heatsink, which are connected to no node. No node has this number.
NODE = 9
TIMEOUT_MS = 60000  # timeout of requests to servers
# The rules that the driver has as well.
RULES = [f"{key} cache stale={stale} ttl=1m admit=all jitter=0% refresh-ahead=0"
         for key, stale in (("key0", "1s"), ("key1", "1m"))]


class Proxied:
    """Parts that both worlds share."""

    def connect(self, name, *resp3):
        self.open(name)
        self.clients[name] = Client(NODE)
        self.send(name, encode("HELLO", "3" if resp3 else "2"))
        self.settle()
        self.reader(name).read()

    def listen(self):
        """Reads the replies of the clients that sent requests. Pushes are not waited for: they have a delay."""
        heard = {name: self.read(name, client.expected) for name, client in self.clients.items() if client.spoke}
        for name in heard:
            self.clients[name].spoke = False
        return heard

    def run_line(self, line):
        verb, *rest = line.split(" ")
        if verb in ("connect", "moment"):  # these lines have no output
            getattr(self, verb)(*rest)
            return {}
        return super().run_line(line)

    def hide(self, heard):
        return {name: [b"-UNKNOWN\r\n" if raw.startswith(b"-UNKNOWN ") else raw for raw in replies]
                for name, replies in super().hide(heard).items()}

    def seen(self, name, key, value):
        def is_seen():
            self.send(name, encode("GET", key))
            reply = self.read(name, 1)[-1]
            return not reply.startswith(b"-") if value == "*" else reply.endswith(b"\r\n%s\r\n" % value.encode())
        self.wait(is_seen)

    def sequences(self, script):
        """Runs the script; returns the whole output of each client, in order."""
        sequences = {}
        for heard in self.run(script):
            for name, replies in heard.items():
                sequences.setdefault(name, []).extend(replies)
        return sequences


def is_refusal(raw):
    return raw.startswith(b"-CLUSTERDOWN ") and raw.endswith((b"; not run\r\n", b"; not sent\r\n"))


def has_refusals(sequences):
    return any(is_refusal(raw) for replies in sequences.values() for raw in replies)


def leave_out_refused(script, sequences):
    """The script without the refused requests and without the moves that caused the refusals, and the clients' output
    for the other requests. A refused EXEC becomes a DISCARD. None: the other replies cannot be predicted, because a
    refused command may have run in one of its slots, or because there are pushes. Clients that pipeline at the same
    time must not share keys."""
    heard = {name: list(replies) for name, replies in sequences.items()}
    lines, left, unread = [], {name: [] for name in heard}, {}
    for line in script:
        verb, _, text = line.partition(" ")
        name = verb[:-1]
        if verb[-1] in ":~":
            requests = []
            for request in text.split(" ; "):
                reply = heard[name].pop(0)
                if is_refusal(reply) and len(set(re.findall(r"@(\w+)", request))) > 1:
                    return None
                if is_refusal(reply) and request == "EXEC":
                    request, reply = "DISCARD", b"+OK\r\n"
                if not is_refusal(reply):
                    requests.append(request)
                    left[name].append(reply)
            unread[name] = unread.get(name, 0) + len(requests) if verb[-1] == "~" else 0
            lines += [f"{verb} " + " ; ".join(requests)] if requests else []
        elif verb[-1] == "?":
            lines += [f"{verb} {unread[name]}"] if unread[name] else []
            unread[name] = 0
        elif verb[-1] == ">" or verb == "seen":
            return None
        elif verb not in ("begin_move", "move", "end_move", "moment"):
            lines.append(line)
    return lines, {name: replies for name, replies in left.items() if replies}


class RealHeatsink(Proxied, RealFaults):
    def run(self, script):
        rules = [word for rule in RULES for word in ("--rule", rule)]
        self.heatsink = servers.Heatsink("--engine", self.cluster.url(), "--workers", "1",
                                         "--engine-timeout", TIMEOUT_MS, *rules)
        try:
            self.heatsink.wait_engine()
            return super().run(script)
        finally:
            self.heatsink.close()

    def port(self, node):
        return self.heatsink.port

    def open(self, name):
        self.connections[name] = Connection(self.heatsink.port, servers.GUARD_S)

    def moment(self, _):
        pass

    # ---- the Cluster ----

    def clean_up(self):
        super().clean_up()
        owners = self.cluster.owners()
        for rule in RULES:
            slot = slot_of(rule.split()[0])
            home = self.cluster.nodes[slot * MASTERS // SLOTS]
            if owners[slot] is not home:
                self.cluster.move_slots([slot], to=home)

    def begin_move(self, key, node):
        self.wait_epochs()
        self.cluster.begin_move([slot_of(key)], self.cluster.nodes[int(node)])
        self.moving = getattr(self, "moving", {})
        self.moving[slot_of(key)] = self.cluster.nodes[int(node)]

    def move(self, key):
        self.cluster.move_keys([slot_of(key)], self.moving[slot_of(key)], keys=[key])

    def end_move(self, key):
        slot = slot_of(key)
        to = self.moving.pop(slot)
        self.cluster.move_keys([slot], to)
        self.cluster.end_move([slot], to)

    def crash(self, number):
        """Kills the node, also if it is frozen."""
        self.cluster.nodes[int(number)].kill9()
        self.crashed.add(int(number))

    def behind(self, *words):
        owner = self.cluster.master_of(words[1])
        reply = owner.ask(*words)
        if reply.raw.startswith(b"-ASK "):
            to = self.moving[slot_of(words[1])]
            reply = to._exchange([("ASKING",), words])[1]
        assert not reply.is_error, reply


class WaitingBytes(Bytes):
    """A reader that lets simulated time pass until a complete reply has come."""

    def __init__(self, world):
        super().__init__(b"")
        self.world = world

    def _fill(self):
        for _ in range(2 * TIMEOUT_MS // self.world.STEP_MS):
            size = len(self.buffer) - self.at
            if self.closed:
                raise Closed
            self.world.settle()
            if len(self.buffer) - self.at > size:
                return
        super()._fill()


class SimulatedHeatsink(Proxied, Simulated):
    STEP_MS = 20
    DRIVER = "simulated_heatsink"

    def wait(self, condition):
        guard = time.monotonic() + servers.GUARD_S
        while not condition():
            if time.monotonic() > guard:
                raise AssertionError("it does not happen")
            self.pass_(100)

    def open(self, name):
        self.numbers[name] = len(self.numbers)
        self.buffers[name] = WaitingBytes(self)
        self.say(f"connect {self.numbers[name]}")

    def settle(self):
        self.pass_(self.STEP_MS)

    def moment(self, us):
        self.exchange(f"pass {random.Random(self.seed).randint(0, int(us))}")

    def agree(self):
        self.pass_(1000)

    sync = agree

    def failover(self, number):
        self.say(f"fail_over {number}")
        self.pass_(100)

    def lag(self, number):
        self.stall(number)

    def takeover(self, number):
        self.say(f"take_over {number}")

    def crash(self, number):
        self.say(f"crash {number}")

    def restart(self, number):
        self.say(f"restart {number}")

    def begin_move(self, key, node):
        self.say(f"move_begin {slot_of(key)} {node}")

    def move(self, key):
        self.say(f"move_key {slot_of(key)} {key.encode().hex()}")

    def end_move(self, key):
        self.say(f"move_end {slot_of(key)}")
        self.pass_(100)

    def behind(self, *words):
        self.say("behind " + " ".join(word.encode().hex() for word in words))
