"""Scripts of clients that run against a real Cluster and against the simulated one (sim/cluster.h). The replies and
pushes of each client are made comparable: ids and addresses are replaced by the node's number.

A script is a list of lines:

    connect a 0          opens connection a to node 0, in RESP2; `connect a 0 3` in RESP3
    a: GET x@0           sends a request; several with " ; " between them are sent together
    a~ BLPOP x@0 0       sends a request without waiting for the reply
    a? 1                 reads this many replies to requests sent with a~
    a> 1                 reads until this many pushes have come
    blocked a            waits until the server reports the connection as blocked
    close a
    sync                 waits until replicas have all data of their masters
    agree                waits until all nodes know all changes of the topology
    pass 5               lets 5 ms pass
    failover 3           makes node 3 take over, and waits until it has
    stall 0 | thaw 0     SIGSTOP, SIGCONT
    + a: GET x@0         as without "+", but the output counts for the line before (so does that of sync and agree)

x@0 is the key x in a slot that node 0 owns at the beginning, x@0b one in another slot of it; $slot0 and $slot0b are
their numbers, $id0 the id of a node, $addr0 its host and port, $client_a the id of a connection. 'a_b is the word
"a b", and '' the empty word.

After every line except a~, each connection that is not in a transaction sends PING: everything before the reply to it
belongs to this line.

To "hear" a reply or push means to receive it, in the names below.
"""
import os
import re
import subprocess
import time

import servers
from cluster import slot_of
from resp import Closed, Connection, encode

MASTERS, REPLICAS = 3, 1
SLOTS = 16384
POLL_S = 0.001
KEY = re.compile(r"(\w+)@(\d)(b?)")
SLOT = re.compile(r"\$slot(\d)(b?)")
ID = re.compile(r"\$id(\d)")
ADDRESS = re.compile(r"\$addr(\d)")
CLIENT = re.compile(r"\$client_(\w)")


def find_tags():
    """For each master, hash tags of two slots that it owns at the beginning."""
    tags = {}
    for number in range(100000):
        node = slot_of(f"t{number}") * MASTERS // SLOTS
        for letter in ("", "b"):
            if (node, letter) not in tags:
                tags[node, letter] = f"t{number}"
                break
        if len(tags) == 2 * MASTERS:
            return tags
    raise AssertionError("no tags")


TAGS = find_tags()


class Names:
    """Translates names that differ between two equivalent Clusters: ids, addresses, connection ids."""

    def __init__(self, ids, addresses):
        self.ids, self.addresses, self.clients = ids, addresses, {}
        self.rules = []
        for number, (host, port) in enumerate(addresses):
            host, port = host.encode(), str(port).encode()
            self.rules.append((b"$%d\r\n%s\r\n:%s\r\n" % (len(host), host, port),
                               b"<address %d>" % number))
            self.rules.append((host + b":" + port, b"<%d>" % number))
        self.rules += [(identity.encode(), b"<id %d>" % number)
                       for number, identity in enumerate(ids)]

    def fill(self, text):
        """A script line with names replaced by this Cluster's values."""
        text = KEY.sub(lambda m: "%s{%s}" % (m[1], TAGS[int(m[2]), m[3]]), text)
        text = SLOT.sub(lambda m: str(slot_of(TAGS[int(m[1]), m[2]])), text)
        text = ID.sub(lambda m: self.ids[int(m[1])], text)
        text = ADDRESS.sub(lambda m: "%s %d" % self.addresses[int(m[1])], text)
        return CLIENT.sub(lambda m: str(self.clients[m[1]]), text)

    def hide(self, raw):
        for found, shown in self.rules:
            raw = raw.replace(found, shown)
        return re.sub(rb"(\$2\r\nid|\$8\r\nredirect)\r\n:\d+\r\n", b"<client>", raw)


class Bytes(Connection):
    """A reader of replies from bytes already received."""

    def __init__(self, data):  # pylint: disable=super-init-not-called
        self.buffer, self.at, self.closed = data, 0, False

    def _fill(self):
        if self.closed:
            raise Closed
        raise AssertionError("no whole reply: %r" % self.buffer[self.at:])


class Client:
    """A world's state of a connection."""

    def __init__(self, node):
        self.node, self.in_multi, self.closed = node, False, False
        self.waits = False  # replies are outstanding, to be read by a later line
        self.spoke, self.expected = False, 0

    def note(self, words):
        verb = words[0].upper()
        if verb == "MULTI":
            self.in_multi = True
        elif verb in ("EXEC", "DISCARD", "RESET"):
            self.in_multi = False


def join(script, heard):
    """The output line by line, as (number of the line, {name: [bytes]}). The output of sync, agree and "+" lines is
    added to the line before, because nodes exchange changes with varying delay."""
    joined = []
    for number, (line, replies) in enumerate(zip(script, heard)):
        if joined and (line in ("sync", "agree") or line[0] == "+"):
            for name, more in replies.items():
                joined[-1][1][name] = joined[-1][1].get(name, []) + more
        else:
            joined.append((number, dict(replies)))
    return joined


class World:
    """Runs a script. `heard`: for each line the output of each connection, {name: [bytes]}."""

    def __init__(self):
        self.clients, self.heard, self.token, self.names = {}, [], 0, None
        self.stalled = set()  # nodes that do not answer
        self.silent = set()   # nodes that answer PING with an error

    def run(self, script):
        self.clients, self.heard, self.names.clients = {}, [], {}
        for line in script:
            self.heard.append(self.run_line(self.names.fill(line.removeprefix("+ "))))
        return self.heard

    def run_line(self, line):
        verb, *rest = line.split(" ")
        if verb[-1] in ":~":
            self.ask(verb[:-1], " ".join(rest), wait=verb[-1] == ":")
        elif verb[-1] == "?":
            return self.hide({verb[:-1]: self.read(verb[:-1], int(rest[0]))})
        elif verb[-1] == ">":
            return self.hide({verb[:-1]: self.read(verb[:-1], int(rest[0]), b">")})
        elif verb == "connect":
            self.connect(rest[0], int(rest[1]), rest[2:] == ["3"])
        else:
            getattr(self, "pass_" if verb == "pass" else verb)(*rest)
        return {} if verb[-1] == "~" else self.hide(self.listen())

    def hide(self, heard):
        return {name: [self.names.hide(raw) for raw in replies]
                for name, replies in heard.items() if replies}

    def ask(self, name, text, wait):
        client, requests = self.clients[name], []
        for request in text.split(" ; "):
            words = [word.strip("'").replace("_", " ") if "'" in word else word
                     for word in request.split(" ")]
            requests.append(encode(*words))
            client.note(words)
        self.send(name, b"".join(requests))
        client.waits = not wait
        client.expected, client.spoke = len(requests), wait

    def listen(self):
        """Output of every connection up to the reply to its PING (in a transaction: its replies). The connection that
        sent the line's requests comes first: after its PING the requests have run and the server's event loop cycle
        is over."""
        heard = {}
        self.settle()
        for name, client in self.clients.items():
            if client.spoke:
                heard[name] = self.read(name, client.expected) \
                    if client.in_multi or client.node in self.silent else self.meet([name])[name]
                client.spoke = False
        idle = [name for name, client in self.clients.items()
                if not (client.closed or client.in_multi or client.waits)
                and client.node not in self.stalled | self.silent]
        for name, more in self.meet(idle).items():
            heard[name] = heard.get(name, []) + more
        return heard

    def meet(self, names):
        tokens = {}
        for name in names:
            self.token += 1
            tokens[name] = b"token-%d" % self.token
            self.send(name, encode("PING", tokens[name]))
        self.settle()
        return {name: self.read_until(name, token) for name, token in tokens.items()}

    def settle(self):
        pass

    def reader(self, name):
        raise NotImplementedError

    def read(self, name, count, of=None):
        """Reads `count` replies, or pushes if `of` is b">", and everything before the last one."""
        client, replies = self.clients[name], []
        try:
            while count > 0:
                reply = self.reader(name).read()
                replies.append(reply.raw)
                count -= (reply.kind == ord(">")) == (of == b">")
        except (Closed, ConnectionError):
            client.closed = True
            replies.append(b"closed")
        client.waits = False
        return replies

    def read_until(self, name, token):
        replies = []
        try:
            while True:
                reply = self.reader(name).read()
                if token in reply.raw:
                    return replies
                replies.append(reply.raw)
        except (Closed, ConnectionError):
            self.clients[name].closed = True
            return [*replies, b"closed"]


class Real(World):
    """The world of real redis-server nodes."""

    def __init__(self, cluster):
        super().__init__()
        self.cluster, self.connections = cluster, {}
        self.names = Names([node.id for node in cluster.nodes],
                           [("127.0.0.1", node.port) for node in cluster.nodes])

    def run(self, script):
        try:
            return super().run(script)
        finally:
            for connection in self.connections.values():
                connection.close()
            self.connections = {}
            self.clean_up()

    def clean_up(self):
        """Restores the initial roles and slots, and deletes all data."""
        cluster = self.cluster
        for node in cluster.nodes:
            if node.frozen:
                node.thaw()
        self.stalled = set()
        cluster.end_moves()
        for number, node in enumerate(cluster.nodes[:MASTERS]):
            if not node.is_master():
                self.failover(number)
        owners = cluster.owners()
        self.wait_epochs()
        for (number, _), tag in TAGS.items():
            if owners[slot_of(tag)] is not cluster.nodes[number]:
                cluster.move_slots([slot_of(tag)], to=cluster.nodes[number])
        for node in cluster.nodes[:MASTERS]:
            node.call("FLUSHALL")
        cluster.wait_synced()

    def port(self, node):
        return self.cluster.nodes[node].port

    def ask_node(self, node, *args):
        return self.cluster.nodes[node].call(*args)

    def connect(self, name, node, resp3):
        connection = Connection(self.port(node), servers.GUARD_S)
        self.connections[name] = connection
        if resp3:
            connection.call("HELLO", "3")
        self.names.clients[name] = connection.call("CLIENT", "ID").number()
        self.clients[name] = Client(node)

    def close(self, name):
        self.connections.pop(name).close()
        del self.clients[name]

    def send(self, name, data):
        try:
            self.connections[name].send(data)
        except OSError:
            pass  # the server has closed it: the reader notices that

    def reader(self, name):
        return self.connections[name]

    def wait(self, condition):
        guard = time.monotonic() + servers.GUARD_S
        while not condition():
            if time.monotonic() > guard:
                raise AssertionError("it does not happen")
            time.sleep(POLL_S)

    def blocked(self, name):
        node, number = self.clients[name].node, self.names.clients[name]
        self.wait(lambda: b" flags=b " in self.ask_node(node, "CLIENT", "LIST", "ID", number).text)

    def sync(self):
        self.cluster.wait_synced()

    def agree(self):
        """Waits until all nodes that answer name the same owners; they need not agree on replicas."""
        def agreed():
            views = [{row.id: row.ranges for row in node.rows() if row.ranges}
                     for node in self.cluster.answering()]
            return all(view == views[0] for view in views)
        self.wait(agreed)

    def wait_epochs(self):
        """Waits until all nodes that answer know the epochs of all masters. A node that moves a slot earlier may claim
        it with an epoch that is no newer than the last owner's, and the slot ends without an owner."""
        def known():
            views = [{row.id: row.epoch for row in node.rows() if row.ranges}
                     for node in self.cluster.answering()]
            return all(view == views[0] for view in views)
        self.wait(known)

    def pass_(self, ms):
        def now_us():
            seconds, us = self.ask_node(0, "TIME").items
            return seconds.number() * 1000000 + us.number()
        until = now_us() + int(ms) * 1000
        self.wait(lambda: now_us() >= until)

    def failover(self, number):
        """A manual failover. The same node can take over once in four node timeouts only, because Redis counts the
        votes of the last failover with those of the next."""
        node = self.cluster.nodes[int(number)]
        master = self.wait_known(node)
        node.call("CLUSTER", "FAILOVER")
        self.wait(lambda: node.is_master() and not master.is_master())
        self.cluster.wait_synced()

    def wait_known(self, node):
        """Waits until all nodes know this node's master; returns the master."""
        master = self.cluster.node(node.myself().master)
        self.wait(lambda: all(row.master == master.id for other in self.cluster.nodes
                              for row in other.rows() if row.id == node.id))
        return master

    def stall(self, number):
        self.cluster.nodes[int(number)].freeze()
        self.stalled.add(int(number))

    def thaw(self, number):
        self.cluster.nodes[int(number)].thaw()
        self.stalled.discard(int(number))


class Alone(Real):
    """The world of one redis-server that is not in a Cluster; it is node 0."""

    def __init__(self, server):
        World.__init__(self)
        self.server, self.connections = server, {}
        self.names = Names(["f" * 40], [("127.0.0.1", server.port)])

    def clean_up(self):
        with Connection(self.server.port, servers.GUARD_S) as connection:
            connection.call("FLUSHALL")

    def port(self, node):
        return self.server.port

    def sync(self):
        pass

    agree = sync

    def ask_node(self, node, *args):
        with Connection(self.server.port, servers.GUARD_S) as connection:
            return connection.call(*args)


class Simulated(World):
    """The simulated world (tests/drivers/simulated.c). `mistake`: the rule of the servers to switch off."""

    DRIVER = "simulated"

    def __init__(self, masters=MASTERS, replicas=REPLICAS, mistake=None):
        super().__init__()
        path = os.path.join(os.path.dirname(servers.heatsink_path()), "drivers", self.DRIVER)
        self.child = subprocess.Popen([path, str(masters), str(replicas), *([mistake] if mistake else [])],
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.seed, self.numbers, self.buffers = 1, {}, {}

    def end(self):
        self.child.stdin.close()
        code = self.child.wait(servers.GUARD_S)
        self.child.stdout.close()
        if code != 0:
            raise AssertionError(f"the driver ended with {code}")

    def say(self, line):
        self.child.stdin.write(line.encode() + b"\n")

    def run(self, script):
        self.say(f"reset {self.seed}")
        self.numbers, self.buffers = {}, {}
        nodes = self.exchange("pass 0")
        self.names = Names([node[2] for node in nodes], [(node[3], int(node[4])) for node in nodes])
        return super().run(script)

    def exchange(self, line):
        """Sends a line to the driver; processes its output up to "done"."""
        nodes = []
        self.say(line)
        self.child.stdin.flush()
        names = {number: name for name, number in self.numbers.items()}
        while True:
            words = self.child.stdout.readline().decode().split()
            if not words:
                raise AssertionError("the driver has ended")
            if words[0] == "done":
                return nodes
            if words[0] == "node":
                nodes.append(words)
            elif words[0] == "got":
                buffer = self.buffers[names[int(words[1])]]
                buffer.buffer = buffer.buffer[buffer.at:] + bytes.fromhex(words[2])
                buffer.at = 0
            elif words[0] == "closed":
                self.buffers[names[int(words[1])]].closed = True

    def connect(self, name, node, resp3):
        self.numbers[name] = len(self.numbers)
        self.buffers[name] = Bytes(b"")
        self.say(f"connect {self.numbers[name]} {node}")
        self.clients[name] = Client(node)
        self.send(name, (encode("HELLO", "3") if resp3 else b"") + encode("CLIENT", "ID"))
        self.settle()
        if resp3:
            self.buffers[name].read()
        self.names.clients[name] = self.buffers[name].read().number()

    def close(self, name):
        self.say(f"close {self.numbers[name]}")
        del self.clients[name]

    def send(self, name, data):
        self.say(f"send {self.numbers[name]} {data.hex()}")

    def reader(self, name):
        return self.buffers[name]

    def settle(self):
        self.exchange("settle")

    def read(self, name, count, of=None):
        self.settle()
        return super().read(name, count, of)

    def blocked(self, name):
        self.settle()

    sync = agree = settle

    def pass_(self, ms):
        self.exchange(f"pass {int(ms) * 1000}")

    def failover(self, number):
        self.connect("failover", int(number), False)
        self.send("failover", encode("CLUSTER", "FAILOVER"))
        self.settle()
        self.close("failover")

    def stall(self, number):
        self.say(f"stall {number}")
        self.stalled.add(int(number))

    def thaw(self, number):
        self.say(f"thaw {number}")
        self.stalled.discard(int(number))
