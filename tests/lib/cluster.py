"""A real Redis Cluster for tests: redis-server processes on loopback, ended with the test.

    with Cluster(masters=3, replicas=1) as cluster:
        cluster.url()                               # cluster://127.0.0.1:…,…: for heatsink --engine
        cluster.direct("key").set("key", "1")       # a client of the node that owns it
        cluster.master_of("key").kill9()            # also freeze, thaw, restart
        cluster.move_slots(range(0, 100), to=cluster.nodes[1])

Each node starts with a nodes.conf that names all nodes, so they need no CLUSTER MEET: ids, slots and epochs are the
same in every node from the start. The only wait is Redis's own: a starting master reports ok after two seconds. Ports
and bus ports are reserved as long as the cluster exists, so a killed node comes back at the same port.

`node_timeout_ms` is long, so that a busy machine causes no failover by accident. A test that needs an automatic
failover sets it lower: 1000 if every master may fail over, some thousands otherwise. With args=ASKED_ONLY a replica
takes over only on request, so no acknowledged write is lost because a master got no processor time. Data is in memory;
args=("--appendonly", "yes") keeps it over a restart. Every status is read from the running nodes, each asked about
itself only.

The harness repeats requests that Redis may refuse, forget or give up. A cluster that does not form is started again on
other ports; a cluster whose nodes do not agree again between two tests is replaced by a new one. Both leave a note in
the report of the tests.
"""
import collections
import functools
import os
import shutil
import signal
import tempfile
import threading
import time

import redis
from redis.crc import key_slot

import certificates
from relay import Relay
from resp import Closed, Connection
from servers import GUARD_S, Process, ReservedPort, Server, note

SLOTS = 16384
POLL_S = 0.01
KEYS_A_BATCH = 100
MIGRATE_TIMEOUT_MS = GUARD_S * 1000
FAILOVER_S = 6    # Redis silently gives up a requested failover after five seconds
FORM_S = 60       # a cluster that takes longer to form is started again, with more time
FORMATIONS = 3    # attempts to form a cluster, or to replace it
RESET_S = 45      # a reset that takes longer replaces the cluster
EPOCHS = 1000000  # added to the epochs of replaced nodes, so that they are above all earlier ones
ASKED_ONLY = ("--cluster-replica-no-failover", "yes")
LAST_LINES = 20   # lines of an unhealthy node's log in a failure report


def slot_of(key):
    return key_slot(key.encode() if isinstance(key, str) else key)


class Row:
    """One line of CLUSTER NODES."""

    def __init__(self, line):
        words = line.split(" ")
        self.id, self.address = words[0], words[1]
        self.flags = set(words[2].split(","))
        self.master = None if words[3] == "-" else words[3]
        self.epoch, self.linked = int(words[6]), words[7] == "connected"
        self.moving = [word for word in words[8:] if word.startswith("[")]  # [93-<-ID] or [93->-ID]
        self.ranges = tuple(word for word in words[8:] if not word.startswith("["))  # 93 or 93-98

    @functools.cached_property
    def slots(self):
        """The slots as a set. This is slow; a comparison can use `ranges`."""
        slots = set()
        for word in self.ranges:
            first, _, last = word.partition("-")
            slots.update(range(int(first), int(last or first) + 1))
        return slots

    @property
    def is_master(self):
        return "master" in self.flags

    @property
    def is_well(self):
        return not self.flags & {"fail", "fail?", "handshake", "noaddr"}

    def said(self):
        """The parts of the row that two agreeing nodes report alike."""
        return self.id, " ".join(sorted(self.flags - {"myself"})), self.master, self.epoch, \
            self.ranges


class Node(Server):
    """One redis-server of a cluster. It listens on `port`; other nodes and clients are told `public_port`, which is
    the relay's port if the node has a relay."""

    def __init__(self, cluster, name):
        self.cluster, self.name = cluster, name
        self.id = os.urandom(20).hex()
        self.reserved, self.reserved_bus = ReservedPort(), ReservedPort()
        self.relay = Relay(self.reserved.number, parse=not cluster.tls) if cluster.relays else None
        self.frozen = False
        self.lock = threading.Lock()
        self.control = None  # the harness's own connection, used under the lock
        folder = os.path.join(cluster.folder, name)
        os.mkdir(folder)
        super().__init__(*cluster.args, data=folder)

    def __repr__(self):
        return f"{self.name} (127.0.0.1:{self.port}, {self.id[:8]})"

    @property
    def public_port(self):
        return self.relay.port if self.relay else self.port

    @property
    def address(self):
        return f"127.0.0.1:{self.public_port}"

    @property
    def bus_port(self):
        return self.reserved_bus.number

    def start(self):
        """Does nothing: the cluster starts its nodes when all ports are reserved."""
        self.port = self.reserved.number

    # ---- its process ----

    def write_configuration(self):
        own = "port 0\ntls-port" if self.cluster.tls else "port"
        announce = "cluster-announce-tls-port" if self.cluster.tls else "cluster-announce-port"
        lines = [f"{own} {self.port}", "bind 127.0.0.1", f"dir {self.data}", 'save ""',
                 "cluster-enabled yes", "cluster-config-file nodes.conf",
                 f"cluster-port {self.bus_port}",
                 f"cluster-node-timeout {self.cluster.node_timeout_ms}",
                 # Replicas sync at once and may always take over.
                 "repl-diskless-sync-delay 0", "cluster-replica-validity-factor 0",
                 # Replicas stay with their master, even if it has no slot left.
                 "cluster-allow-replica-migration no",
                 *self.cluster.configuration]
        if self.relay:
            lines.append(f"{announce} {self.relay.port}")
        self._write("redis.conf", lines)

    def write_nodes(self, roles):
        """Writes the nodes.conf for this node's first start. `roles`: for each node its kind, master, epoch and
        slots."""
        lines = [f"{node.id} {node.address}@{node.bus_port} {'myself,' if node is self else ''}"
                 f"{kind} {master.id if master else '-'} 0 0 {epoch} connected {slots}".rstrip()
                 for node, (kind, master, epoch, slots) in roles.items()]
        highest = max(epoch for _, _, epoch, _ in roles.values())
        self._write("nodes.conf", lines + [f"vars currentEpoch {highest} lastVoteEpoch 0"])

    def forget(self):
        """Deletes the node's files: data and nodes.conf. It must not be running."""
        for entry in os.scandir(self.data):
            if entry.is_dir():
                shutil.rmtree(entry)
            else:
                os.unlink(entry)

    def _write(self, name, lines):
        with open(os.path.join(self.data, name), "w", encoding="ascii") as file:
            file.write("\n".join(lines) + "\n")

    def launch(self):
        self.frozen = False
        self.process = Process(["redis-server", os.path.join(self.data, "redis.conf"), *self.args])

    def wait_listening(self, guard_s=GUARD_S):
        self.wait_log("Ready to accept connections", guard_s)

    def restart(self):
        """Starts the node again after kill9() or stop(), or stops and starts it. It starts in its old role and
        learns its present role from the other nodes."""
        if self.running():
            self.kill9()
        self.launch()
        self.wait_listening()

    def freeze(self):
        """SIGSTOP: connections stay open, no request is answered."""
        self.frozen = True
        self.signal(signal.SIGSTOP)

    def thaw(self):
        self.signal(signal.SIGCONT)
        self.frozen = False

    def answers(self):
        return self.running() and not self.frozen

    def _close_clients(self):
        super()._close_clients()
        with self.lock:
            if self.control:
                self.control.close()
                self.control = None

    def close(self):
        """Kills the node in any state and deletes its files."""
        self._close_clients()
        if self.relay:
            self.relay.close()
        if self.process:
            self.process.kill9()
        self.reserved.release()
        self.reserved_bus.release()

    # ---- its clients ----

    def client(self, **options):
        options = {**self.cluster.client_options(), "socket_timeout": GUARD_S, **options}
        client = redis.Redis(host="127.0.0.1", port=self.port, **options)
        self.clients.append(client)
        return client

    def connect(self):
        """A resp.Connection, logged in."""
        connection = Connection(self.port, guard_s=GUARD_S)
        if self.cluster.tls:
            context = self.cluster.tls.context()
            connection.socket = context.wrap_socket(connection.socket, server_hostname="127.0.0.1")
        if self.cluster.password:
            connection.call("AUTH", self.cluster.password)
        return connection

    def raw(self):
        self.clients.append(self.connect())
        return self.clients[-1]

    def call_all(self, requests):
        """Replies to these requests, sent together. May be called from any thread. An error reply fails the test."""
        replies = self._exchange(requests)
        for request, reply in zip(requests, replies):
            if reply.is_error:
                raise AssertionError(f"{self}: {request}: {reply.text.decode()}")
        return replies

    def call(self, *args):
        return self.call_all([args])[0]

    def ask(self, *args):
        """The reply or the error, for requests that Redis may refuse at first."""
        return self._exchange([args])[0]

    def _exchange(self, requests):
        with self.lock:
            self.control = self.control or self.connect()
            try:
                return self.control.call_all(requests)
            except (OSError, Closed):
                self.control.close()
                self.control = None
                raise

    # ---- what it says ----

    def rows(self):
        """CLUSTER NODES of this node, as Rows."""
        return [Row(line) for line in self.call("CLUSTER", "NODES").text.decode().splitlines()]

    def myself(self):
        return next(row for row in self.rows() if "myself" in row.flags)

    def is_master(self):
        return self.myself().is_master

    def info(self, section):
        lines = self.call("INFO", section).text.decode().splitlines()
        return dict(line.split(":", 1) for line in lines if ":" in line)

    def cluster_info(self):
        lines = self.call("CLUSTER", "INFO").text.decode().split("\r\n")
        return dict(line.split(":", 1) for line in lines if line)

    def state(self):
        """ok or fail."""
        return self.cluster_info()["cluster_state"]


class Cluster:
    """masters × (1 + replicas) nodes: nodes[0:masters] start as masters with equal shares of the
    slots, and nodes[masters + i * replicas] follows nodes[i].

    password  of the default user; the nodes use it among themselves, too
    users     ACL rules: ["app on >secret ~app:* +@all"]
    tls       clients, replication and the bus by TLS; the certificates are in `tls`
    relays    a relay.Relay in front of every node, which the cluster names to its clients
    args      for every redis-server"""

    def __init__(self, masters=3, replicas=1, node_timeout_ms=10000, password=None, users=(),
                 tls=False, relays=False, args=()):
        self.node_timeout_ms, self.password, self.relays = node_timeout_ms, password, relays
        self.args, self.configuration = args, [f"user {user}" for user in users]
        self.folder = tempfile.mkdtemp(prefix="heatsink-cluster-")
        self.nodes, self.tls, self.shape, self.beginnings = [], None, (masters, replicas), 0
        self.clock = time.time() - time.monotonic()
        try:
            self._configure(tls)
            self._attempt(self._form)
        except BaseException:
            self.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _configure(self, tls):
        if self.password:
            self.configuration += [f"requirepass {self.password}", f"masterauth {self.password}"]
        if tls:
            self.tls = certificates.make(self.folder)
            self.configuration += ["tls-cluster yes", "tls-replication yes",
                                   f"tls-cert-file {self.tls.cert}", f"tls-key-file {self.tls.key}",
                                   f"tls-ca-cert-file {self.tls.ca}", "tls-auth-clients optional"]

    def _attempt(self, form):
        """Repeats form() until a cluster exists. The cluster is not the subject of the test, so a failure prints a
        note and leads to another attempt with more time."""
        for attempt in range(1, FORMATIONS + 1):
            try:
                return form(FORM_S * attempt)
            except AssertionError as error:
                if attempt == FORMATIONS:
                    raise
                note(f"a cluster did not form and is started again: {error}")

    def _form(self, guard_s):
        """Starts new nodes on new ports; ends those of an earlier attempt."""
        for node in self.nodes:
            node.close()
            shutil.rmtree(node.data)
        self.nodes = []
        for number in range(self.shape[0] * (1 + self.shape[1])):
            self.nodes.append(Node(self, f"node-{number}"))
        self._start(guard_s)

    def _start(self, guard_s):
        (masters, replicas), epoch = self.shape, self.beginnings * EPOCHS + 1
        self.beginnings += 1
        roles = {}
        for i, node in enumerate(self.nodes[:masters]):
            share = f"{SLOTS * i // masters}-{SLOTS * (i + 1) // masters - 1}"
            roles[node] = ("master", None, epoch + i, share)
        for i, node in enumerate(self.nodes[masters:]):
            roles[node] = ("slave", self.nodes[i // replicas], epoch + i // replicas, "")
        for node in self.nodes:
            node.write_configuration()
            node.write_nodes(roles)
            node.launch()
        for node in self.nodes:
            node.wait_listening(guard_s)
        self.wait_ready(guard_s)

    def close(self):
        """Ends every node, whatever its state."""
        for node in self.nodes:
            node.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def client_options(self):
        options = {"password": self.password} if self.password else {}
        if self.tls:
            options.update(ssl=True, ssl_ca_certs=self.tls.ca)
        return options

    def url(self, *nodes, user=None, password=None):
        """The URL for heatsink's --engine, with these nodes or all. Default is the cluster's password; an empty
        one leaves it out."""
        password = self.password if password is None else password
        login = f"{user or ''}:{password}@" if password else ""
        where = ",".join(node.address for node in nodes or self.nodes)
        return f"{'clusters' if self.tls else 'cluster'}://{login}{where}"

    # ---- waiting ----

    def wait(self, what, condition, guard_s=GUARD_S):
        """Polls until the condition holds and returns its value. A lost connection counts as "not yet". After
        guard_s the test fails with describe()."""
        guard = time.monotonic() + guard_s
        while True:
            try:
                if found := condition():
                    return found
            except (OSError, Closed, redis.ConnectionError):
                pass
            if time.monotonic() > guard:
                raise AssertionError(f"never happened: {what}\n{self.describe()}")
            time.sleep(POLL_S)

    def wait_ready(self, guard_s=GUARD_S):
        """Waits until every node that answers reports ok and agrees with the others, and replicas are in sync."""
        self.wait("every node says ok", lambda: all(n.state() == "ok" for n in self.answering()),
                  guard_s)
        self.wait_agreed(guard_s)
        self.wait_synced(guard_s)

    def wait_agreed(self, guard_s=GUARD_S):
        """Waits until all nodes that answer name the same owners and replicas and none calls another one failed. A
        replica knows its master before the master knows the replica; until then the master ignores a failover
        request."""
        self.wait("the nodes agree", self._agreed, guard_s)

    def _agreed(self):
        answering = self.answering()
        known = {node.id for node in answering}
        views = [node.rows() for node in answering]
        owners = [{row.id: row.ranges for row in view if row.ranges} for view in views]
        roles = [{row.id: row.master for row in view if row.id in known} for view in views]
        return all(view == owners[0] for view in owners) and \
            all(view == roles[0] for view in roles) and \
            all(row.is_well for view in views for row in view if row.id in known)

    def wait_synced(self, guard_s=GUARD_S):
        """Waits until every replica whose master answers has all of its data."""
        self.wait("replicas are in sync", lambda: all(map(self._synced, self.answering())), guard_s)

    def _synced(self, node):
        mine = node.myself()
        if mine.is_master or not self.node(mine.master).answers():
            return True
        wanted = self.node(mine.master).info("replication")
        have = node.info("replication")
        return have["master_link_status"] == "up" and \
            wanted["role"] == "master" and \
            int(have["slave_repl_offset"]) >= int(wanted["master_repl_offset"])

    def describe(self):
        """The report for a failed test: each node's view. Unhealthy nodes come first, with the end of their logs,
        then nodes with a view of their own; a view that several nodes share appears once."""
        told = [self._ask(node) for node in self.nodes]
        shared = collections.Counter(view for _, _, _, view in told)
        told.sort(key=lambda one: (one[1] == "ok", shared[one[3]]))
        words, shown = [], {}
        set_by = time.time() - time.monotonic() - self.clock
        if abs(set_by) > 1:  # after the clock was set back, nodes exchange no gossip until it reaches the old time
            words.append(f"the clock was set by {set_by:+.0f} s meanwhile")
        for node, state, text, view in told:
            if view in shown:
                text = f"\n  as {shown[view]}"
            elif view:
                shown[view] = node.name
            words.append(f"{node}: {state}{text}")
            if state != "ok":
                log = node.log if node.process else []
                words += [f"  | {line}" for line in log[-LAST_LINES:]]
        return "\n".join(words)

    @staticmethod
    def _ask(node):
        """The node, its state, and its view: as text, and in a form to compare."""
        if not node.answers():
            return node, "frozen" if node.running() else "not running", "", None
        try:
            info, rows = node.cluster_info(), node.rows()
            text = node.call("CLUSTER", "NODES").text.decode().rstrip()
        except (OSError, Closed, AssertionError) as error:
            return node, repr(error), "", None
        owned = set().union(*(row.slots for row in rows))
        counts = " ".join(f"{name} {info['cluster_' + name]}" for name in (
            "current_epoch", "size", "slots_assigned", "slots_pfail", "slots_fail"))
        lost = sorted(set(range(SLOTS)) - owned)
        missing = f", {len(lost)} slots are nobody's: {lost[:10]}" if lost else ""
        return node, info["cluster_state"], "".join(
            f"\n  {line}" for line in [counts + missing, *text.splitlines()]), \
            frozenset(row.said() for row in rows)

    # ---- who is who ----

    def answering(self):
        return [node for node in self.nodes if node.answers()]

    def node(self, identity):
        return next(node for node in self.nodes if node.id == identity)

    def masters(self):
        """The nodes that own slots, by their own report."""
        return [node for node in self.answering() if node.myself().ranges]

    def replicas_of(self, master):
        return [node for node in self.answering() if node.myself().master == master.id]

    def owners(self):
        """The owner of each slot, as a list of nodes; None if no node that answers claims the slot. Of two claims
        the one with the greater epoch counts."""
        owners, epochs = [None] * SLOTS, [-1] * SLOTS
        for node in self.answering():
            mine = node.myself()
            for slot in mine.slots if mine.is_master else ():
                if mine.epoch > epochs[slot]:
                    owners[slot], epochs[slot] = node, mine.epoch
        return owners

    def master_of(self, key):
        """The node that owns a key, or a slot given as a number; None: no owner."""
        slot = key if isinstance(key, int) else slot_of(key)
        rows = [(node, node.myself()) for node in self.answering()]
        claims = [(row.epoch, node) for node, row in rows if row.is_master and slot in row.slots]
        return max(claims, key=lambda claim: claim[0])[1] if claims else None

    def direct(self, key, **options):
        """A python3-redis client of the node that owns the key."""
        return self.master_of(key).client(**options)

    # ---- change ----

    def fail_over(self, node, how=None):
        """Lets a replica take over: this node, or the first replica of this master. `how`: FORCE if the master is
        gone, TAKEOVER if the other masters are gone as well. Returns the new master."""
        if node not in self.answering() or node.is_master():
            master = node
            node = self.wait(f"{master} has a replica", lambda: self.replicas_of(master))[0]
        asked = -FAILOVER_S

        def taken_over():
            nonlocal asked
            if node.is_master():
                return True
            if time.monotonic() > asked + FAILOVER_S:
                asked = time.monotonic()
                node.ask("CLUSTER", "FAILOVER", *([how] if how else []))
            return False
        self.wait(f"{node} takes over", taken_over)
        self.wait_agreed()
        return node

    def begin_move(self, slots, to):
        """Starts the migration of slots: the owner answers ASK for missing keys, the new node serves requests after
        ASKING, and commands whose keys are on both nodes get TRYAGAIN."""
        self.wait_agreed()  # a node that does not know of a failover refuses
        for source, part in self._by_owner(slots):
            self._begin(source, part, to)

    def move_keys(self, slots, to, keys=None, count=None):
        """Moves these keys, or at most `count`, or all keys of these slots; returns their number."""
        moved = 0
        for source, part in self._by_owner(slots):
            if keys is None:
                left = None if count is None else count - moved
                moved += self._move(source, part, to, left)
            else:
                moved += self._migrate(source, [k for k in keys if slot_of(k) in part], to)
        return moved

    def end_move(self, slots, to):
        """Makes `to` the owner of the slots at all nodes. No key may remain at the old owner."""
        masters = self.masters()
        for source, part in self._by_owner(slots):
            self._end(source, part, to, masters)
        self.wait_agreed()

    def move_slots(self, slots, to, a_time=1):
        """Moves slots with their keys, `a_time` slots at a time; returns the number of keys moved."""
        self.wait_agreed()
        masters, moved = self.masters(), 0
        for source, part in self._by_owner(slots):
            for at in range(0, len(part), a_time):
                few = part[at:at + a_time]
                self._begin(source, few, to)
                moved += self._move(source, few, to, None)
                self._end(source, few, to, masters)
        self.wait_agreed()
        return moved

    def _by_owner(self, slots):
        owners, parts = self.owners(), {}
        for slot in slots:
            parts.setdefault(owners[slot], []).append(slot)
        return list(parts.items())

    def _begin(self, source, slots, to):
        to.call_all([("CLUSTER", "SETSLOT", slot, "IMPORTING", source.id) for slot in slots])
        source.call_all([("CLUSTER", "SETSLOT", slot, "MIGRATING", to.id) for slot in slots])

    def _move(self, source, slots, to, limit):
        moved = 0
        sizes = source.call_all([("CLUSTER", "COUNTKEYSINSLOT", slot) for slot in slots])
        for slot in (slot for slot, size in zip(slots, sizes) if size.number()):
            while limit is None or moved < limit:
                batch = KEYS_A_BATCH if limit is None else min(KEYS_A_BATCH, limit - moved)
                found = source.call("CLUSTER", "GETKEYSINSLOT", slot, batch).items
                if not found:
                    break
                moved += self._migrate(source, [key.text for key in found], to)
        return moved

    def _migrate(self, source, keys, to):
        login = ["AUTH", self.password] if self.password else []
        if keys:
            source.call("MIGRATE", "127.0.0.1", to.port, "", 0, MIGRATE_TIMEOUT_MS, *login,
                        "KEYS", *keys)
        return len(keys)

    def _end(self, source, slots, to, masters):
        others = [node for node in masters if node not in (source, to)]
        for node in [to, source, *others]:  # in this order a slot has an owner at any time
            node.call_all([("CLUSTER", "SETSLOT", slot, "NODE", to.id) for slot in slots])

    def end_moves(self):
        """Cancels migrations; keys stay where they are."""
        self.wait("no slot is on its way", self._call_off)

    def _call_off(self):
        """True if no migration is left. A node that becomes a replica refuses the command and drops its migrations
        itself."""
        moving = False
        for node in self.answering():
            for word in node.myself().moving:
                moving = True
                node.ask("CLUSTER", "SETSLOT", word[1:].split("-")[0], "STABLE")
        return not moving

    def reset(self):
        """Prepares a shared cluster for the next test: all nodes run, no slot migrates, no data. Slots and roles
        stay as they are; if the nodes do not agree in time, start_anew() restores the initial state."""
        try:
            for node in self.nodes:
                if not node.running():
                    node.restart()
                elif node.frozen:
                    node.thaw()
            self.end_moves()  # first: a node ignores gossip about a migrating slot
            self.wait_ready(RESET_S)
        except AssertionError as error:
            note(f"a cluster is started anew: {error}")
            self.start_anew()
        for node in self.answering():
            if node.is_master():
                node.call_all([("FLUSHALL",), ("SCRIPT", "FLUSH"), ("FUNCTION", "FLUSH")])
        self.wait_synced()

    def start_anew(self):
        """Restarts all nodes, empty, on the same ports, with the initial slots and roles. Their epochs are higher
        than all earlier ones, so that a heatsink that knows the cluster accepts the new topology."""
        self._attempt(self._start_anew)

    def _start_anew(self, guard_s):
        for node in self.nodes:
            if node.running():
                node.kill9()
            node.forget()
        self._start(guard_s)
