"""Random scripts for tests/integration/test_sim_cluster.py, in the language of tests/lib/simulated.py: a few
connections in all modes of tracking, few keys, a slot that moves key by key, transactions, failovers.
"""
import random

ROUNDS = 60
NAMES = ("x", "y", "z")
FAR_MS = 4102444800000
MODES = ("", " NOLOOP", " OPTIN", " OPTIN NOLOOP", " OPTOUT", " BCAST", " BCAST NOLOOP",
         " BCAST PREFIX x PREFIX y")


class Script:
    def __init__(self, seed, master):
        self.draw, self.master = random.Random(seed), master
        self.lines = ["connect y 0", "connect z 1"]
        self.nodes, self.modes, self.in_multi = {}, {}, set()
        self.moving, self.moved = False, 0

    def connect(self, name, node, resp3, mode=None):
        self.lines.append(f"connect {name} {node}{' 3' if resp3 else ''}")
        self.nodes[name] = node
        if node >= 3:
            self.lines.append(f"{name}: READONLY")
        if mode is not None:
            self.modes[name] = mode
            self.lines.append(f"{name}: CLIENT TRACKING ON{mode}")

    def key(self):
        slot = self.draw.choice(("", "", "b", "b", "elsewhere"))
        return f"{self.draw.choice(NAMES)}@1" if slot == "elsewhere" else self.name(slot)

    def name(self, slot):
        return f"{self.draw.choice(NAMES)}@{self.master}{slot}"

    def keys(self):
        slot = self.draw.choice(("", "b"))
        return [self.name(slot) for _ in range(self.draw.randint(1, 3))]

    def command(self):
        draw, key = self.draw, self.key()
        value = draw.randint(0, 99)
        return draw.choice((
            f"GET {key}", f"GET {key}", f"GET {key}", f"SET {key} {value}", f"SET {key} {value}",
            f"SET {key} {value} PXAT {FAR_MS}", f"SET {key} {value} XX GET", f"SETNX {key} {value}",
            f"INCR {key}", f"INCRBY {key} {value}", f"APPEND {key} {value}", f"DEL {key}",
            f"GETDEL {key}", f"GETSET {key} {value}", f"EXISTS {key}", f"STRLEN {key}",
            f"PEXPIRETIME {key}", f"PEXPIREAT {key} {draw.choice((1, FAR_MS, FAR_MS + 1000))}",
            f"PERSIST {key}", f"GETEX {key} PERSIST", f"TOUCH {key}", f"TYPE {key}",
            "MGET " + " ".join(self.keys()), "EXISTS " + " ".join(self.keys()),
            "DEL " + " ".join(self.keys()), "RENAME " + " ".join((self.keys() * 2)[:2]),
            "MSET " + " ".join(f"{k} {value}" for k in self.keys()), "PING", "DBSIZE", "NOSUCH x",
            f"SETRANGE {key} 1 ab", f"GETRANGE {key} 0 -1", f"COPY {key} {key}"))

    def requests(self, name):
        """The requests that a connection sends together."""
        draw, mode = self.draw, self.modes.get(name, "")
        if name in self.in_multi:
            self.in_multi.discard(name)
            return [self.command() for _ in range(draw.randint(0, 2))] + \
                [draw.choice(("EXEC", "EXEC", "EXEC", "DISCARD"))]
        choice = draw.randint(0, 19)
        caching = ["CLIENT CACHING YES"] if "OPTIN" in mode and draw.randint(0, 2) else \
            ["CLIENT CACHING NO"] if "OPTOUT" in mode and draw.randint(0, 1) else []
        if choice < 2:
            return caching + ["MULTI", *(self.command() for _ in range(draw.randint(1, 4))), "EXEC"]
        if choice < 4:
            watch = ["WATCH " + " ".join(self.keys())] if draw.randint(0, 1) else []
            self.in_multi.add(name)
            return watch + ["MULTI", *(self.command() for _ in range(draw.randint(0, 2)))]
        if choice < 7 and self.nodes[name] < 3:
            return caching + ["ASKING", self.command()]
        if choice < 8 and name in self.modes:
            return ["CLIENT TRACKING OFF", f"CLIENT TRACKING ON{mode}"]
        return caching + [self.command() for _ in range(draw.randint(1, 3))]

    def move(self):
        """The next step of the migration of slot 0b from node 0 to node 1, or back."""
        if not self.moving and self.moved == 0:
            self.lines += ["z: CLUSTER SETSLOT $slot0b IMPORTING $id0",
                           "y: CLUSTER SETSLOT $slot0b MIGRATING $id1"]
            self.moving = True
        elif self.moving and self.moved < len(NAMES):
            self.lines += [f"y: MIGRATE $addr1 '' 0 60000 REPLACE KEYS {NAMES[self.moved]}@0b", "sync"]
            self.moved += 1
        elif self.moving:
            keys = " ".join(f"{name}@0b" for name in NAMES)
            self.lines += [f"y: MIGRATE $addr1 '' 0 60000 REPLACE KEYS {keys}", "sync",
                           "z: CLUSTER SETSLOT $slot0b NODE $id1",
                           "y: CLUSTER SETSLOT $slot0b NODE $id1", "agree", "sync"]
            self.moving = False


def script(seed, fails_over=False):
    """A random script. With a failover it uses node 2, whose replica takes over once; otherwise node 0."""
    master = 2 if fails_over else 0
    self = Script(seed, master)
    draw = self.draw
    for name in "abcd":
        self.connect(name, draw.choice((master, master, master, 1)), draw.randint(0, 3) > 0,
                     draw.choice(MODES) if draw.randint(0, 3) else None)
    self.connect("r", master + 3, True, draw.choice(MODES))
    for number in range(ROUNDS):
        choice = draw.randint(0, 39)
        if fails_over and number == ROUNDS // 2:
            self.lines += [f"failover {master + 3}", "agree", "sync"]
        elif choice < 4 and not fails_over:
            self.move()
        elif choice == 4 and not fails_over:
            self.lines += [f"{draw.choice('yz')}: FLUSHALL", "sync"]
        else:
            name = draw.choice("aabbccddrr" if fails_over else "aabbccddr")
            self.lines += [f"{name}: " + " ; ".join(self.requests(name)), "sync"]
    return self.lines
