"""Scripts with servers that freeze, crash, lose unreplicated writes, or are cut off from the others, for
tests/integration/test_sim_cluster.py, and the two worlds that run them. In addition to the lines of
tests/lib/simulated.py they have:

    lag 3                freezes replica 3 and makes its master drop it: it gets no further writes
    takeover 3 [FORCE]   CLUSTER FAILOVER TAKEOVER, or FORCE, at node 3, with the data that it has
    crash 0 [big]        kill -9: its connections are lost; big: with data that take a while to load
    restart 0 [empty | loading]   starts with its data, without, or stays in the loading state
    loaded 0             waits until it has loaded its data
    down 0               waits until all nodes that answer call node 0 failed, and no other node
    alone 0              freezes all other nodes, for less than node 0's node timeout
    minority 0           waits until node 0 has noticed that it is alone
    together             thaws the other nodes
    strict 3             CONFIG SET replica-serve-stale-data no
    unlinked 3           waits until replica 3 has noticed that its master is away
    still 0 ok           checks that node 0's state has been this one since the last line that changed it

Some states of Redis are short: a master that starts refuses requests for two seconds. `still` detects a script that
was too slow for such a state; then the script runs again.

Not covered: two parts of a Cluster that run at the same time without contact. Redis 7.0 has no command that closes the
bus, and a relay between all nodes cannot tell which node connects. Each side is tested by itself, with `alone` and
`down`. A write to a frozen master that was replaced meanwhile is not covered either: Redis answers it as before or with
MOVED, depending on what it reads first, and the simulated Cluster always reads the other nodes' messages first.
"""
import os
import shutil

from simulated import MASTERS, Real, Simulated, World

TAKEOVERS = {
    "a takeover that loses": [
        "connect a 0 3", "connect w 0", "connect c 0 3", "connect m 0", "connect n 0", "connect l 0",
        "connect r 3 3", "connect o 1", "w: SET x@0 1 ; SET y@0 2", "sync",
        "r: READONLY ; CLIENT TRACKING ON ; GET x@0 ; GET y@0", "lag 3",
        "a: CLIENT TRACKING ON ; GET x@0 ; GET y@0", "c: CLIENT TRACKING ON BCAST",
        "w: SET x@0 9 ; SET z@0 1 ; GET x@0 ; DEL y@0", "a: GET x@0 ; GET z@0",
        "m: WATCH x@0", "n: WATCH nothing@0", "l~ BLPOP list@0 0", "blocked l",
        "stall 0", "thaw 3", "r: GET x@0 ; SET x@0 3", "takeover 3", "agree",
        "r: GET x@0 ; MGET y@0 z@0 ; INCR y@0 ; DBSIZE", "o: GET x@0",
        "thaw 0", "agree", "sync", "l? 1",
        "w: GET x@0 ; SET x@0 7 ; INCR z@0 ; DBSIZE", "m: MULTI ; PING ; EXEC ; WATCH y@0",
        "n: MULTI ; PING ; EXEC", "w: READONLY ; GET x@0 ; MGET y@0 z@0", "a: READONLY ; GET x@0 ; GET y@0",
        "r: SET x@0 5", "sync", "w: GET x@0", "m: READONLY ; WATCH x@0 ; MULTI ; GET x@0", "r: INCR x@0",
        "sync", "m: EXEC"],
    "a takeover of all there is": [
        "connect a 0 3", "connect w 0", "connect m 0", "connect r 3 3", "w: SET x@0 1", "sync",
        "a: CLIENT TRACKING ON ; GET x@0", "m: WATCH x@0", "lag 3", "stall 0", "thaw 3", "takeover 3", "agree",
        "r: INCR x@0", "thaw 0", "agree", "sync", "a: GET x@0 ; READONLY ; GET x@0", "m: MULTI ; PING ; EXEC"],
    "a takeover by force": [
        "connect a 1 3", "connect m 1", "connect r 4 3", "a: SET x@1 1", "sync", "lag 4",
        "a: INCR x@1 ; CLIENT TRACKING ON ; GET x@1", "m: WATCH x@1 ; MULTI ; PING", "stall 1", "thaw 4",
        "takeover 4 FORCE", "agree", "r: GET x@1 ; APPEND x@1 b", "thaw 1", "agree", "sync",
        "m: EXEC", "a: READONLY ; GET x@1"],
    "a crash, a takeover, and back": [
        "connect w 0", "connect r 3 3", "connect o 1", "w: SET x@0 1 ; SET y@0 1", "sync", "lag 3", "w: INCR x@0",
        "crash 0", "thaw 3", "takeover 3", "agree", "r: GET x@0 ; SET y@0 9", "restart 0", "agree", "sync",
        "connect v 0", "v: GET x@0 ; READONLY ; MGET x@0 y@0", "o: GET x@0", "r: INCR x@0", "sync", "v: GET x@0"],
}

FAULTS = {
    "a crash, with its data": [
        "connect a 0 3", "connect w 0", "connect o 1", "connect r 3 3", "w: SET x@0 1 ; SET y@0 2", "sync",
        "r: READONLY ; CLIENT TRACKING ON ; GET x@0", "o~ BLPOP list@1 0", "blocked o", "crash 0",
        "r: GET x@0 ; SET x@0 3", "restart 0", "+ connect b 0 3",
        "+ b: GET x@0 ; SET x@0 5 ; PING ; DBSIZE ; WATCH y@0 ; MULTI ; EXEC ; CLUSTER MYID",
        "+ still 0 fail", "agree", "sync", "b: GET x@0 ; INCR y@0", "sync", "r: GET x@0 ; GET y@0"],
    "a crash, without its data": [
        "connect w 0", "connect o 1", "connect r 3 3", "w: SET x@0 1 ; SET y@0 2", "sync",
        "r: READONLY ; CLIENT TRACKING ON ; GET x@0", "crash 0", "o: GET x@0", "restart 0 empty", "agree", "sync",
        "connect b 0", "b: GET x@0 ; INCR y@0 ; DBSIZE", "sync", "r: GET x@0 ; GET y@0", "o: GET x@0"],
    "a replica that crashes": [
        "connect w 0", "connect r 3 3", "w: SET x@0 1", "sync", "r: READONLY ; GET x@0", "crash 3", "w: INCR x@0",
        "restart 3 empty", "agree", "sync", "connect q 3", "q: GET x@0 ; READONLY ; GET x@0 ; DBSIZE"],
    "at the loading": [
        "connect w 0", "w: SET x@0 1", "crash 0 big", "restart 0 loading", "connect b 0", "connect c 0 3",
        "b: PING ; ECHO a ; DBSIZE ; CLUSTER MYID ; CLIENT GETNAME ; MULTI ; GET x@0 ; EXEC",
        "b: GET x@0 ; SET x@0 2 ; WATCH x@0 ; MULTI ; PING ; EXEC ; MULTI ; EXEC ; FLUSHALL",
        "c: CLIENT TRACKING ON ; GET x@0 ; UNWATCH ; READONLY ; ASKING", "b: SUBSCRIBE a ; UNSUBSCRIBE a",
        "still 0 loading", "loaded 0", "agree", "sync", "b: GET x@0", "c: GET x@0 ; PING"],
    "a master that has failed": [
        "connect o 1 3", "connect t 1 3", "connect l 1", "connect m 1", "connect r 4 3", "o: SET x@1 1", "sync",
        "t: CLIENT TRACKING ON ; GET x@1", "m: WATCH x@1 ; MULTI ; GET x@1", "l~ BLPOP list@1 0", "blocked l",
        "crash 0", "o: GET x@1 ; GET x@0", "still 1 ok", "down 0", "+ l? 1",
        "o: GET x@1 ; SET x@1 2 ; GET x@0 ; PING ; DBSIZE ; MULTI ; EXEC ; MGET x@1 y@1 ; MGET x@1 x@0",
        "o: WATCH x@1 ; MULTI ; GET x@1 ; EXEC", "m: GET x@1", "m: EXEC ; MULTI ; PING ; EXEC",
        "o: PUBLISH a b ; SSUBSCRIBE a@1 ; SPUBLISH a@1 b ; SUNSUBSCRIBE a@1", "o: ASKING ; GET x@1",
        "r: GET x@1 ; READONLY ; GET x@1 ; CLUSTER MYID", "restart 0", "agree", "sync",
        "o: GET x@1 ; INCR x@1 ; GET x@0 ; SPUBLISH a@1 b"],
    "a master that stands still, and is back": [
        "connect a 0", "connect o 1", "a: SET x@0 1", "stall 0", "down 0", "o: GET x@1", "thaw 0", "agree",
        "sync", "a: GET x@0 ; SET x@0 2", "o: GET x@1 ; GET x@0"],
    "a slot of a failed master and one of nobody": [
        "connect o 1", "connect z 1", "z: CLUSTER DELSLOTS $slot1b", "o: GET x@1 ; GET x@1b ; MGET x@1 x@1b",
        "crash 0", "down 0", "o: GET x@1 ; GET x@1b ; MGET x@1 x@1b", "restart 0", "agree 1",
        "o: GET x@1b", "z: CLUSTER ADDSLOTS $slot1b", "o: GET x@1 ; GET x@1b"],
    "the minority": [
        "connect a 0", "connect b 0 3", "connect l 0", "a: SET x@0 1", "sync", "b: CLIENT TRACKING ON ; GET x@0",
        "l~ BLPOP list@0 0", "blocked l", "alone 0", "a: GET x@0 ; SET x@0 2 ; GET x@1", "still 0 ok", "minority 0",
        "+ l? 1", "a: GET x@0 ; SET x@0 3 ; GET x@1 ; PING ; MULTI ; EXEC ; DBSIZE", "a: MULTI ; GET x@0 ; EXEC",
        "b: GET x@0 ; FLUSHALL ; DBSIZE", "together", "agree", "sync", "a: GET x@0 ; SET x@0 4", "b: GET x@0"],
    "a replica that does not serve what may be old": [
        "connect w 0", "connect r 3", "connect q 3 3", "w: SET x@0 1", "sync",
        "q: READONLY ; CLIENT TRACKING ON ; GET x@0 ; WATCH x@0", "r: READONLY ; GET x@0", "strict 3",
        "r: GET x@0", "crash 0", "unlinked 3", "r: GET x@0 ; MGET x@0 y@0 ; SET x@0 2 ; GET x@1 ; DBSIZE ; ECHO a",
        "r: MULTI ; GET x@0 ; EXEC ; MULTI ; EXEC ; CLIENT GETNAME ; CLUSTER MYID ; READWRITE ; GET x@0 ; READONLY",
        "q: PING ; MULTI ; GET x@0 ; EXEC ; UNWATCH ; CLIENT TRACKING OFF", "still 3 ok", "restart 0", "agree", "sync",
        "r: GET x@0 ; SET x@0 1", "q: GET x@0"],
}


class Missed(Exception):
    """A short state of Redis was over too early; the script must run again."""


class Faults(World):
    """State of both worlds about nodes that do not serve. `mute` nodes run, but PING may fail there: a loading node,
    and a replica with replica-serve-stale-data no."""

    def __init__(self, *args):
        super().__init__(*args)
        self.crashed, self.mute = set(), set()

    def listen(self):
        self.silent = self.mute
        return super().listen()

    def lag(self, number):
        self.stall(number)

    def still(self, number, state):
        pass

    def restart(self, number, how=""):
        self.crashed.discard(int(number))
        if how == "loading":
            self.mute = self.mute | {int(number)}

    def loaded(self, number):
        self.mute = self.mute - {int(number)}

    def strict(self, number):
        self.mute = self.mute | {int(number)}

    def unlinked(self, number):
        pass

    def others(self, number):
        return [node for node in range(2 * MASTERS) if node != int(number)]


class RealFaults(Faults, Real):
    ATTEMPTS = 8        # runs of a script that is too slow for a short state of Redis
    SHORT_MS = 500      # node timeout while nodes must notice a failure or a return
    BIG = ("DEBUG", "POPULATE", "2000", "fill", "2048")
    LOADING = ("--key-load-delay", "20000", "--loading-process-events-interval-bytes", "1024")
    APPEND_ONLY = ("--appendonly", "yes")

    def run(self, script):
        for _ in range(self.ATTEMPTS):
            try:
                return super().run(script)
            except Missed:
                pass
        raise AssertionError("the machine is too slow for this script")

    # ---- node timeouts ----

    def answering(self):
        return self.cluster.answering()

    def set_timeout(self, ms):
        for node in self.answering():
            node.call("CONFIG", "SET", "cluster-node-timeout", ms)

    def notice(self, condition):
        """Waits until the nodes have noticed a failure or a return, which takes one or two node timeouts."""
        self.set_timeout(self.SHORT_MS)
        self.wait(condition)
        self.set_timeout(self.cluster.node_timeout_ms)
        if not condition():
            raise Missed

    def agree(self, *but):
        """Waits until all nodes that answer name the same owners, and report ok if all nodes answer."""
        if self.stalled or self.crashed:
            super().agree()
        elif but:  # a slot has no owner
            self.notice(lambda: all(row.is_well for node in self.answering() for row in node.rows()))
        else:
            self.notice(lambda: all(node.state() == "ok" for node in self.answering()) and
                        self.cluster._agreed())

    def down(self, number):
        """Waits until all nodes call this node failed and suspect no other one."""
        failed = self.cluster.nodes[int(number)].id
        self.notice(lambda: all(("fail" in row.flags) == (row.id == failed) and "fail?" not in row.flags
                                for node in self.answering() for row in node.rows()) and
                    all(node.state() == "fail" for node in self.answering()))

    def alone(self, number):
        for other in self.others(number):
            self.stall(other)

    def minority(self, number):
        node = self.cluster.nodes[int(number)]
        self.notice(lambda: node.state() == "fail")

    def together(self):
        for other in sorted(self.stalled):
            self.thaw(other)

    def still(self, number, state):
        node = self.cluster.nodes[int(number)]
        if state == "loading":
            now = "loading" if node.info("persistence")["loading"] == "1" else "loaded"
        else:
            now = node.state()
        if now != state:
            raise Missed

    # ---- nodes ----

    def lag(self, number):
        master = self.cluster.node(self.cluster.nodes[int(number)].myself().master)
        self.stall(number)
        master.call("CLIENT", "KILL", "TYPE", "replica")
        self.wait(lambda: master.info("replication")["connected_slaves"] == "0")

    def takeover(self, number, how="TAKEOVER"):
        node = self.cluster.nodes[int(number)]
        node.call("CLUSTER", "FAILOVER", how)
        self.wait(node.is_master)

    def crash(self, number, how=""):
        """Kills the node; an append-only file keeps its data for the restart."""
        node = self.cluster.nodes[int(number)]
        if how == "big":
            node.call(*self.BIG)
        node.call("CONFIG", "SET", "appendonly", "yes")

        def written():
            info = node.info("persistence")
            return info["aof_rewrite_in_progress"] == info["aof_rewrite_scheduled"] == "0"
        self.wait(written)
        node.kill9()
        self.crashed.add(int(number))

    def restart(self, number, how=""):
        super().restart(number, how)
        node = self.cluster.nodes[int(number)]
        args = node.args
        node.args = [*args, *(() if how == "empty" else self.APPEND_ONLY),
                     *(self.LOADING if how == "loading" else ())]
        node.launch()
        node.args = args
        if how != "loading":
            self.up(node)
            return

        def connects():
            try:
                return node.call("CLIENT", "ID")
            except OSError:
                return False
        self.wait(connects)

    def up(self, node):
        node.wait_listening()
        node.call("DEBUG", "SET-ACTIVE-EXPIRE", "0")
        node.call("CONFIG", "SET", "appendonly", "no")
        shutil.rmtree(os.path.join(node.data, "appendonlydir"), ignore_errors=True)

    def loaded(self, number):
        node = self.cluster.nodes[int(number)]
        node.call("CONFIG", "SET", "key-load-delay", "0")
        self.up(node)
        super().loaded(number)

    def strict(self, number):
        super().strict(number)
        self.cluster.nodes[int(number)].call("CONFIG", "SET", "replica-serve-stale-data", "no")

    def unlinked(self, number):
        node = self.cluster.nodes[int(number)]
        self.wait(lambda: node.info("replication")["master_link_status"] == "down")

    def sync(self):
        super().sync()
        if not self.stalled and not self.crashed:
            self.mute = set()

    def clean_up(self):
        """Restores the beginning: all nodes run with their initial roles and slots, without data."""
        cluster = self.cluster
        for node in cluster.nodes:
            if not node.running():
                node.launch()
                self.up(node)
            elif node.frozen:
                node.thaw()
        self.stalled, self.crashed, self.mute = set(), set(), set()
        for node in cluster.nodes:
            node.call("CONFIG", "SET", "key-load-delay", "0")
            node.call("CONFIG", "SET", "replica-serve-stale-data", "yes")
        for number in range(MASTERS):
            if not cluster.nodes[number].is_master():
                cluster.wait_synced()
                self.takeover(number)
        self.set_timeout(self.SHORT_MS)
        cluster.wait_ready()
        self.set_timeout(cluster.node_timeout_ms)
        super().clean_up()


class SimulatedFaults(Faults, Simulated):
    PATIENCE_MS = 20000  # four node timeouts, see the driver

    def run(self, script):
        self.stalled, self.crashed, self.mute = set(), set(), set()
        return super().run(script)

    def agree(self, *_):
        if self.stalled or self.crashed:
            self.settle()
        else:
            self.exchange("agree")

    def sync(self):
        self.agree()
        if not self.stalled and not self.crashed:
            self.mute = set()

    def takeover(self, number, how="TAKEOVER"):
        self.connect("takeover", int(number), False)
        self.send("takeover", b"CLUSTER FAILOVER %s\r\n" % how.encode())
        self.settle()
        self.close("takeover")

    def crash(self, number, how=""):
        self.say(f"crash {number}")
        self.crashed.add(int(number))

    def restart(self, number, how=""):
        super().restart(number, how)
        self.say(f"restart {number} {how}".rstrip())

    def loaded(self, number):
        super().loaded(number)
        self.exchange(f"pass {60 * 1000000}")

    def down(self, _):
        self.pass_(self.PATIENCE_MS)

    def alone(self, number):
        self.say(f"cut {number}")
        self.stalled.update(self.others(number))
        self.cut = number

    def minority(self, _):
        self.pass_(self.PATIENCE_MS)

    def together(self):
        self.say(f"heal {self.cut}")
        self.stalled = set()

    def strict(self, number):
        super().strict(number)
        self.say(f"strict {number}")
