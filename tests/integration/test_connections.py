"""Goal: connections and the server around them behave as a Redis operator expects.

Method: raw connections to real servers; what one connection does is watched from another. Waiting
is always for a condition, never for a time; the guard only ends a test that would hang.
"""

import os
import re
import select
import shutil
import signal
import sys
import tempfile
import time
import unittest
from collections import Counter

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

import resp
import servers

GUARD_S = 30.0


def wait_for(test, what, condition):
    guard = time.monotonic() + GUARD_S
    while not condition():
        test.assertLess(time.monotonic(), guard, "never happened: " + what)


def rows(connection, *args):
    """CLIENT LIST as dictionaries."""
    text = connection.call("CLIENT", "LIST", *args).text.decode()
    return [dict(field.partition("=")[::2] for field in line.split(" ")) for line in text.splitlines()]


def has_data(connection):
    return bool(select.select([connection.socket], [], [], 0)[0])


class ServerCase(unittest.TestCase):
    """One server for all tests of a class; `args` are its options."""

    args = ("--sync", "off")

    @classmethod
    def setUpClass(cls):
        cls.server = servers.Heatsink(*cls.args)
        cls.addClassCleanup(cls.server.close)

    def connect(self):
        connection = resp.Connection(self.server.port)
        self.addCleanup(connection.close)
        return connection

    def assert_reply(self, connection, raw, *args):
        self.assertEqual(connection.call(*args).raw, raw)

    def assert_usable(self, connection):
        self.assertEqual(connection.call("ECHO", "usable").raw, b"$6\r\nusable\r\n")


class PartialInput(ServerCase):
    """One worker, so that a round trip on another connection proves that it has read everything
    sent before: two of them, because both connections may be ready in the same turn."""

    args = ("--workers", "1", "--sync", "off")

    PIPELINE = (resp.encode("SET", "{p}a", "1\r\n2") + b"PING\r\n" + resp.encode("APPEND", "{p}a", "") +
                resp.encode("GET", "{p}a") + b"*0\r\n\r\n" + b"SET {p}b \"x y\"\r\n" +
                resp.encode("MGET", "{p}a", "{p}b", "{p}nil") + resp.encode("MULTI") + resp.encode("GET", "{p}a") +
                resp.encode("EXEC") + resp.encode("NOSUCH", "") + resp.encode("DEL", "{p}a", "{p}b"))
    REPLIES = (b"+OK\r\n", b"+PONG\r\n", b":4\r\n", b"$4\r\n1\r\n2\r\n", b"+OK\r\n",
               b"*3\r\n$4\r\n1\r\n2\r\n$3\r\nx y\r\n$-1\r\n", b"+OK\r\n", b"+QUEUED\r\n",
               b"*1\r\n$4\r\n1\r\n2\r\n", b"-ERR unknown command 'NOSUCH', with args beginning with: '' \r\n",
               b":2\r\n")

    def settle(self, other):
        for _ in range(2):
            other.call("PING")

    def test_every_split(self):
        other = self.connect()
        connection = self.connect()
        for at in range(1, len(self.PIPELINE)):
            connection.send(self.PIPELINE[:at])
            self.settle(other)
            connection.send(self.PIPELINE[at:])
            got = tuple(connection.read().raw for _ in self.REPLIES)
            self.assertEqual(got, self.REPLIES, "split at byte %d" % at)

    def test_byte_by_byte(self):
        other = self.connect()
        connection = self.connect()
        for at in range(len(self.PIPELINE)):
            connection.send(self.PIPELINE[at:at + 1])
            self.settle(other)
        self.assertEqual(tuple(connection.read().raw for _ in self.REPLIES), self.REPLIES)

    def test_answers_come_before_the_rest_is_sent(self):
        connection = self.connect()
        connection.send(resp.encode("PING") + b"*2\r\n$4\r\nEC")
        self.assertEqual(connection.read().raw, b"+PONG\r\n")
        connection.send(b"HO\r\n$2\r\nok\r\n")
        self.assertEqual(connection.read().raw, b"$2\r\nok\r\n")

    def test_closed_in_the_middle_of_a_request(self):
        connection = self.connect()
        connection.send(b"*3\r\n$3\r\nSET\r\n$9\r\nhalf-sent\r\n$10\r\nabc")
        connection.close()
        other = self.connect()
        self.settle(other)
        self.assert_reply(other, b":0\r\n", "EXISTS", "half-sent")

    def test_half_closed_is_still_answered(self):
        """A client that shuts down its sending side reads all its answers (nc -N)."""
        connection = self.connect()
        connection.send(resp.encode("SET", "half", "1") + resp.encode("GET", "half"))
        connection.socket.shutdown(1)
        self.assertEqual(connection.read_to_end(), b"+OK\r\n$1\r\n1\r\n")


class ClientCommand(ServerCase):
    args = ("--workers", "2", "--sync", "off")

    def test_id(self):
        one, two = self.connect(), self.connect()
        first = one.call("CLIENT", "ID").number()
        self.assertEqual(one.call("CLIENT", "ID").number(), first)
        self.assertNotEqual(two.call("CLIENT", "ID").number(), first)
        self.assertGreater(two.call("CLIENT", "ID").number(), 0)

    def test_names(self):
        connection = self.connect()
        self.assertTrue(connection.call("CLIENT", "GETNAME").is_null)
        self.assert_reply(connection, b"+OK\r\n", "CLIENT", "SETNAME", "me")
        self.assert_reply(connection, b"$2\r\nme\r\n", "CLIENT", "GETNAME")
        self.assertTrue(connection.call("CLIENT", "SETNAME", "a b").is_error)
        self.assert_reply(connection, b"$2\r\nme\r\n", "CLIENT", "GETNAME")
        self.assert_reply(connection, b"+OK\r\n", "CLIENT", "SETNAME", "")
        self.assertTrue(connection.call("CLIENT", "GETNAME").is_null)

    def test_list(self):
        """Every connection, on whichever worker, one line each."""
        connections = [self.connect() for _ in range(5)]
        for at, connection in enumerate(connections):
            connection.call("CLIENT", "SETNAME", "list-%d" % at)
        ids = {connection.call("CLIENT", "ID").number() for connection in connections}
        for connection in connections:
            mine = {row["name"]: row for row in rows(connection) if row["name"].startswith("list-")}
            self.assertEqual(set(mine), {"list-%d" % at for at in range(5)})
            self.assertEqual({int(row["id"]) for row in mine.values()}, ids)
            for at, other in enumerate(connections):
                self.assertEqual(mine["list-%d" % at]["addr"], other.address)
                self.assertEqual(mine["list-%d" % at]["laddr"], "127.0.0.1:%d" % self.server.port)

    def test_list_fields(self):
        connection = self.connect()
        mine = connection.call("CLIENT", "ID").text.decode()
        row = rows(connection, "ID", mine)
        self.assertEqual(len(row), 1)
        for field in ("id", "addr", "laddr", "fd", "name", "age", "idle", "flags", "db", "sub", "psub", "ssub",
                      "multi", "qbuf", "qbuf-free", "argv-mem", "multi-mem", "obl", "oll", "omem", "tot-mem",
                      "events", "cmd", "user", "redir", "resp"):
            self.assertIn(field, row[0])
        self.assertEqual(row[0]["cmd"], "client|list")
        self.assertEqual(row[0]["db"], "0")
        self.assertEqual(row[0]["multi"], "-1")
        self.assertEqual(row[0]["user"], "default")

    def test_list_filters(self):
        one, two = self.connect(), self.connect()
        ids = [connection.call("CLIENT", "ID").text.decode() for connection in (one, two)]
        self.assertEqual([row["id"] for row in rows(one, "ID", ids[1])], ids[1:])
        self.assertEqual({row["id"] for row in rows(one, "ID", *ids)}, set(ids))
        self.assertEqual(rows(one, "ID", "999999999"), [])
        self.assertTrue(set(ids) <= {row["id"] for row in rows(one, "TYPE", "normal")})
        self.assertEqual(rows(one, "TYPE", "pubsub"), [])
        self.assertEqual(rows(one, "TYPE", "replica"), [])

    def test_info(self):
        connection = self.connect()
        connection.call("CLIENT", "SETNAME", "informer")
        text = connection.call("CLIENT", "INFO").text.decode()
        self.assertEqual(text.count("\n"), 1)
        self.assertIn("name=informer", text)
        self.assertIn("addr=%s " % connection.address, text)

    def test_state_in_the_list(self):
        """What CLIENT LIST says of another connection: its last command, MULTI, protocol."""
        watcher, other = self.connect(), self.connect()
        mine = other.call("CLIENT", "ID").text.decode()
        other.call("HELLO", "3")
        other.call("MULTI")
        other.call("GET", "a")
        other.call("GET", "b")
        row = rows(watcher, "ID", mine)[0]
        self.assertEqual((row["multi"], row["cmd"], row["resp"]), ("2", "get", "3"))
        self.assertIn("x", row["flags"])

    def test_kill_by_id(self):
        killer, victim = self.connect(), self.connect()
        mine = victim.call("CLIENT", "ID").text.decode()
        self.assert_reply(killer, b":1\r\n", "CLIENT", "KILL", "ID", mine)
        self.assertTrue(victim.is_closed())
        self.assert_reply(killer, b":0\r\n", "CLIENT", "KILL", "ID", mine)
        self.assertEqual(rows(killer, "ID", mine), [])

    def test_kill_by_address(self):
        killer, victim, old = self.connect(), self.connect(), self.connect()
        for connection in (victim, old):
            connection.call("PING")
        self.assert_reply(killer, b":1\r\n", "CLIENT", "KILL", "ADDR", victim.address)
        self.assertTrue(victim.is_closed())
        self.assert_reply(killer, b"+OK\r\n", "CLIENT", "KILL", old.address)
        self.assertTrue(old.is_closed())
        self.assert_reply(killer, b"-ERR No such client\r\n", "CLIENT", "KILL", old.address)
        self.assert_usable(killer)

    def test_kill_by_local_address_spares_oneself(self):
        killer, one, two = self.connect(), self.connect(), self.connect()
        for connection in (one, two):
            connection.call("PING")
        local = "127.0.0.1:%d" % self.server.port
        self.assertGreaterEqual(killer.call("CLIENT", "KILL", "LADDR", local).number(), 2)
        self.assertTrue(one.is_closed() and two.is_closed())
        self.assert_usable(killer)

    def test_kill_filters_combine(self):
        killer, victim = self.connect(), self.connect()
        mine = victim.call("CLIENT", "ID").text.decode()
        self.assert_reply(killer, b":0\r\n", "CLIENT", "KILL", "ID", mine, "ADDR", killer.address)
        self.assert_reply(killer, b":0\r\n", "CLIENT", "KILL", "ID", mine, "TYPE", "pubsub")
        self.assert_usable(victim)
        self.assert_reply(killer, b":1\r\n", "CLIENT", "KILL", "ID", mine, "ADDR", victim.address,
                          "TYPE", "normal", "USER", "default")
        self.assertTrue(victim.is_closed())

    def test_kill_oneself(self):
        connection = self.connect()
        mine = connection.call("CLIENT", "ID").text.decode()
        self.assert_reply(connection, b":0\r\n", "CLIENT", "KILL", "ID", mine)
        self.assert_reply(connection, b":1\r\n", "CLIENT", "KILL", "ID", mine, "SKIPME", "no")
        self.assertTrue(connection.is_closed())

    def test_kill_in_a_transaction_of_the_victim(self):
        killer, victim = self.connect(), self.connect()
        mine = victim.call("CLIENT", "ID").text.decode()
        victim.call("MULTI")
        victim.call("SET", "killed", "1")
        self.assert_reply(killer, b":1\r\n", "CLIENT", "KILL", "ID", mine)
        self.assertTrue(victim.is_closed())
        self.assert_reply(killer, b":0\r\n", "EXISTS", "killed")

    def test_reply(self):
        connection = self.connect()
        connection.send(resp.encode("CLIENT", "REPLY", "OFF") + resp.encode("SET", "quiet", "1") +
                        resp.encode("NOSUCH") + resp.encode("CLIENT", "REPLY", "ON") +
                        resp.encode("CLIENT", "REPLY", "SKIP") + resp.encode("INCR", "quiet") +
                        resp.encode("GET", "quiet"))
        self.assertEqual(connection.read().raw, b"+OK\r\n")
        self.assertEqual(connection.read().raw, b"$1\r\n2\r\n")

    def test_no_evict_and_setinfo(self):
        connection = self.connect()
        self.assert_reply(connection, b"+OK\r\n", "CLIENT", "NO-EVICT", "ON")
        self.assert_reply(connection, b"+OK\r\n", "CLIENT", "NO-EVICT", "off")
        self.assertTrue(connection.call("CLIENT", "NO-EVICT", "maybe").is_error)
        self.assert_usable(connection)

    def test_setinfo(self):
        """Newer clients introduce their library on every connection."""
        connection = self.connect()
        self.assert_reply(connection, b"+OK\r\n", "CLIENT", "SETINFO", "LIB-NAME", "lib")
        self.assert_reply(connection, b"+OK\r\n", "CLIENT", "SETINFO", "lib-ver", "1.2.3")
        self.assertTrue(connection.call("CLIENT", "SETINFO", "NOSUCH", "x").is_error)
        self.assertTrue(connection.call("CLIENT", "SETINFO", "LIB-NAME", "a b").is_error)
        text = connection.call("CLIENT", "INFO").text.decode()
        self.assertIn("lib-name=lib lib-ver=1.2.3", text)

    def test_unknown_subcommands_leave_it_usable(self):
        connection = self.connect()
        for words in (["NOSUCH"], ["NOSUCH", "a", "b"], [""], ["\r\n"], ["x" * 1000], []):
            reply = connection.call("CLIENT", *words)
            self.assertTrue(reply.is_error, words)
            self.assertTrue(reply.raw.startswith(b"-ERR "), reply)
            self.assert_usable(connection)

    def test_help(self):
        connection = self.connect()
        for command in ("CLIENT", "OBJECT", "COMMAND", "CONFIG", "DEBUG", "SLOWLOG", "LATENCY"):
            reply = connection.call(command, "HELP")
            self.assertGreater(len(reply.items), 2, command)
            self.assertEqual({item.kind for item in reply.items}, {ord("+")}, command)


class Hello(ServerCase):
    args = ("--requirepass", "secret", "--sync", "off")

    def fields(self, reply):
        return {reply.items[at].text: reply.items[at + 1] for at in range(0, len(reply.items), 2)}

    def test_protocols(self):
        connection = self.connect()
        reply = connection.call("HELLO", "3", "AUTH", "default", "secret", "SETNAME", "hello-3")
        self.assertEqual(reply.kind, ord("%"))
        fields = self.fields(reply)
        self.assertEqual(fields[b"proto"].raw, b":3\r\n")
        self.assertEqual(fields[b"id"].number(), connection.call("CLIENT", "ID").number())
        self.assertEqual(fields[b"role"].text, b"master")
        self.assert_reply(connection, b"$7\r\nhello-3\r\n", "CLIENT", "GETNAME")
        self.assert_reply(connection, b"_\r\n", "GET", "nil")
        reply = connection.call("HELLO", "2")
        self.assertEqual(reply.kind, ord("*"))
        self.assertEqual(self.fields(reply)[b"proto"].raw, b":2\r\n")
        self.assert_reply(connection, b"$-1\r\n", "GET", "nil")
        self.assertEqual(self.fields(connection.call("HELLO"))[b"proto"].raw, b":2\r\n")

    def test_refused(self):
        connection = self.connect()
        self.assertTrue(connection.call("HELLO", "3").raw.startswith(b"-NOAUTH HELLO must be called"))
        self.assertTrue(connection.call("HELLO", "3", "AUTH", "default", "no").raw.startswith(b"-WRONGPASS"))
        self.assertTrue(connection.call("HELLO", "4", "AUTH", "default", "secret").raw.startswith(b"-NOPROTO"))
        self.assertTrue(connection.call("GET", "a").raw.startswith(b"-NOAUTH Authentication required."))

    def test_a_password_set_while_running(self):
        """CONFIG SET requirepass holds for new connections; those authenticated stay so."""
        connection = self.connect()
        self.assert_reply(connection, b"+OK\r\n", "AUTH", "secret")
        try:
            self.assert_reply(connection, b"+OK\r\n", "CONFIG", "SET", "requirepass", "changed")
            self.assert_usable(connection)
            other = self.connect()
            self.assertTrue(other.call("AUTH", "secret").raw.startswith(b"-WRONGPASS"))
            self.assert_reply(other, b"+OK\r\n", "AUTH", "changed")
        finally:
            self.assert_reply(connection, b"+OK\r\n", "CONFIG", "SET", "requirepass", "secret")


class Spread(ServerCase):
    """CLIENT LIST ends each line with the worker that has the connection."""

    args = ("--workers", "2", "--sync", "off")

    def share(self, connections):
        mine = {connection.address for connection in connections}
        return Counter(row["worker"] for row in rows(connections[0]) if row["addr"] in mine)

    def alone(self):
        """A connection when there is no other, also not one that is just closing."""
        connection = self.connect()
        wait_for(self, "other connections are gone", lambda: len(rows(connection)) == 1)
        return connection

    def test_a_few_connections(self):
        connections = [self.alone()]
        for count in (2, 4, 6, 8):
            while len(connections) < count:
                connections.append(self.connect())
                connections[-1].call("PING")
            self.assertEqual(self.share(connections), {"0": count // 2, "1": count // 2})

    def test_evens_out_after_closing(self):
        """The gap that closed connections leave on one worker is filled by the next ones."""
        connections = [self.alone()] + [self.connect() for _ in range(7)]
        for connection in connections:
            connection.call("PING")
        where = {row["addr"]: row["worker"] for row in rows(connections[0])}
        home = where[connections[0].address]
        gone = [connection for connection in connections if where[connection.address] != home]
        self.assertEqual(len(gone), 4)
        for connection in gone:
            connection.close()
            connections.remove(connection)
        wait_for(self, "closed connections are gone", lambda: len(rows(connections[0])) == 4)
        connections += [self.connect() for _ in range(4)]
        for connection in connections:
            connection.call("PING")
        self.assertEqual(self.share(connections), {"0": 4, "1": 4})


class MaxClients(unittest.TestCase):
    def test_limit(self):
        with servers.Heatsink("--maxclients", "5", "--workers", "2") as server:
            connections = [server.raw() for _ in range(5)]
            for connection in connections:
                self.assertEqual(connection.call("PING").raw, b"+PONG\r\n")
            refused = server.raw()
            self.assertEqual(refused.read_to_end(), b"-ERR max number of clients reached\r\n")
            for connection in connections:
                self.assertEqual(connection.call("PING").raw, b"+PONG\r\n")
            info = connections[0].call("INFO", "stats").text.decode()
            self.assertIn("rejected_connections:1\r\n", info)

            # Room again when one leaves.
            connections.pop().close()
            wait_for(self, "room for another", lambda: self.welcome(server))

            # And when the limit is raised.
            reply = connections[0].call("CONFIG", "SET", "maxclients", "50")
            self.assertEqual(reply.raw, b"+OK\r\n")
            more = [server.raw() for _ in range(20)]
            for connection in more:
                self.assertEqual(connection.call("PING").raw, b"+PONG\r\n")

    @staticmethod
    def welcome(server):
        connection = server.raw()
        try:
            connection.send(resp.encode("PING"))
            return connection.read().raw == b"+PONG\r\n"
        except (OSError, resp.Closed):
            return False


class Server(ServerCase):
    args = ("--workers", "2", "--sync", "off")

    SECTIONS = {
        "server": ["redis_version", "redis_mode", "os", "process_id", "tcp_port", "uptime_in_seconds",
                   "uptime_in_days", "config_file"],
        "clients": ["connected_clients", "maxclients", "blocked_clients"],
        "memory": ["used_memory", "used_memory_human", "used_memory_rss", "maxmemory"],
        "persistence": ["loading", "aof_enabled"],
        "stats": ["total_connections_received", "total_commands_processed",
                  "total_net_input_bytes", "total_net_output_bytes", "rejected_connections", "expired_keys",
                  "evicted_keys", "keyspace_hits", "keyspace_misses"],
    }

    def info(self, connection, *sections):
        reply = connection.call("INFO", *sections)
        self.assertIn(reply.kind, b"$=")
        lines = reply.text.decode().split("\r\n")
        return {name: value for name, colon, value in (line.partition(":") for line in lines) if colon}

    def test_info_sections(self):
        connection = self.connect()
        connection.call("SET", "a", "1")
        for section, fields in self.SECTIONS.items():
            text = connection.call("INFO", section).text.decode()
            self.assertTrue(text.startswith("# %s\r\n" % section.capitalize()), text[:40])
            self.assertEqual(text.count("# "), 1, section)
            for field in fields:
                self.assertIn(field, self.info(connection, section), section)
        everything = connection.call("INFO", "everything").text.decode()
        headers = re.findall(r"(?m)^# (\w+)", everything)
        for section in list(self.SECTIONS) + ["commandstats", "keyspace"]:
            self.assertIn(section, [header.lower() for header in headers])
        self.assertNotIn("# Commandstats", connection.call("INFO").text.decode())
        self.assertEqual(connection.call("INFO", "nosuch").text, b"")
        two = connection.call("INFO", "server", "keyspace").text.decode()
        self.assertEqual(re.findall(r"(?m)^# (\w+)", two), ["Server", "Keyspace"])

    def test_info_counts(self):
        connection = self.connect()
        connection.call("FLUSHALL")
        self.assert_reply(connection, b"+OK\r\n", "CONFIG", "RESETSTAT")
        for at in range(10):
            connection.call("SET", "k%d" % at, at)
            connection.call("GET", "k%d" % at)
            connection.call("GET", "missing%d" % at)
        connection.call("EXPIRE", "k1", "1000")
        connection.call("INCR", "k1")
        connection.call("SET", "text", "x")
        connection.call("INCR", "text")
        connection.call("GET")
        info = self.info(connection, "everything")
        self.assertEqual(info["keyspace_hits"], "10")
        self.assertEqual(info["keyspace_misses"], "10")
        self.assertRegex(info["db0"], r"^keys=11,expires=1,avg_ttl=\d+$")
        self.assertRegex(info["cmdstat_get"], r"^calls=20,usec=\d+,usec_per_call=[\d.]+,"
                                              r"rejected_calls=1,failed_calls=0$")
        self.assertRegex(info["cmdstat_incr"], r"^calls=2,.*,rejected_calls=0,failed_calls=1$")
        self.assertGreaterEqual(int(info["total_commands_processed"]), 34)
        self.assertGreater(int(info["total_net_input_bytes"]), 700)
        connection.call("CONFIG", "RESETSTAT")
        info = self.info(connection, "everything")
        self.assertEqual(info["keyspace_hits"], "0")
        self.assertNotIn("cmdstat_get", info)

    def test_info_of_this_server(self):
        connection = self.connect()
        info = self.info(connection)
        self.assertEqual(int(info["process_id"]), self.server.pid)
        self.assertEqual(int(info["tcp_port"]), self.server.port)
        before = int(self.info(connection, "clients")["connected_clients"])
        other = self.connect()
        other.call("PING")
        self.assertEqual(int(self.info(connection, "clients")["connected_clients"]), before + 1)

    def test_config_get_and_set(self):
        connection = self.connect()
        names = [item.text for item in connection.call("CONFIG", "GET", "max*").items[0::2]]
        self.assertIn(b"maxclients", names)
        both = connection.call("CONFIG", "GET", "maxclients", "slowlog-*").items
        self.assertTrue({b"maxclients", b"slowlog-max-len"} <= {item.text for item in both[0::2]})
        self.assertEqual(connection.call("CONFIG", "GET", "nosuch").raw, b"*0\r\n")
        self.assert_reply(connection, b"+OK\r\n", "CONFIG", "SET", "slowlog-max-len", "77", "maxclients", "500")
        self.assertEqual(connection.call("CONFIG", "GET", "slowlog-max-len").items[1].text, b"77")
        self.assertEqual(connection.call("CONFIG", "GET", "MAXCLIENTS").items[1].text, b"500")
        # All or nothing.
        reply = connection.call("CONFIG", "SET", "slowlog-max-len", "88", "maxclients", "abc")
        self.assertTrue(reply.raw.startswith(b"-ERR CONFIG SET failed"), reply)
        self.assertEqual(connection.call("CONFIG", "GET", "slowlog-max-len").items[1].text, b"77")
        reply = connection.call("CONFIG", "SET", "partitions", "9")
        self.assertTrue(reply.is_error, reply)
        self.assert_reply(connection, b"+OK\r\n", "CONFIG", "SET", "slowlog-max-len", "128")

    def test_slowlog(self):
        connection = self.connect()
        connection.call("CLIENT", "SETNAME", "slow")
        connection.call("CONFIG", "SET", "slowlog-log-slower-than", "0")
        try:
            connection.call("SLOWLOG", "RESET")
            connection.call("SET", "slow:key", "v" * 200)
            connection.call("MGET", *["k%d" % at for at in range(40)])
            entries = connection.call("SLOWLOG", "GET", "-1").items
        finally:
            connection.call("CONFIG", "SET", "slowlog-log-slower-than", "-1")
        found = {entry.items[3].items[0].text: entry.items for entry in entries}
        entry = found[b"SET"]
        self.assertEqual(len(entry), 6)
        self.assertEqual([item.text for item in entry[3].items],
                         [b"SET", b"slow:key", b"v" * 128 + b"... (72 more bytes)"])
        self.assertEqual(entry[4].text.decode(), connection.address)
        self.assertEqual(entry[5].text, b"slow")
        words = [item.text for item in found[b"MGET"][3].items]
        self.assertEqual(len(words), 32)
        self.assertEqual(words[-1], b"... (10 more arguments)")
        ids = [entry.items[0].number() for entry in entries]
        self.assertEqual(ids, sorted(ids, reverse=True), "newest first")
        self.assertEqual(len(connection.call("SLOWLOG", "GET", "1").items), 1)
        length = connection.call("SLOWLOG", "LEN").number()
        self.assertGreaterEqual(length, 2)
        self.assert_reply(connection, b"+OK\r\n", "SLOWLOG", "RESET")
        self.assert_reply(connection, b":0\r\n", "SLOWLOG", "LEN")

    def test_slowlog_keeps_its_length(self):
        connection = self.connect()
        connection.call("CONFIG", "SET", "slowlog-max-len", "5", "slowlog-log-slower-than", "0")
        for _ in range(20):
            connection.call("PING")
        connection.call("CONFIG", "SET", "slowlog-log-slower-than", "-1")
        self.assert_reply(connection, b":5\r\n", "SLOWLOG", "LEN")
        connection.call("CONFIG", "SET", "slowlog-max-len", "128")

    def test_latency(self):
        connection = self.connect()
        self.assertEqual(connection.call("LATENCY", "LATEST").kind, ord("*"))
        self.assertEqual(connection.call("LATENCY", "RESET").kind, ord(":"))

    def test_command_answers(self):
        connection = self.connect()
        count = connection.call("COMMAND", "COUNT").number()
        everything = connection.call("COMMAND").items
        self.assertEqual(len(everything), count)
        row = connection.call("COMMAND", "INFO", "get", "nosuch")
        self.assertEqual(row.items[0].items[0].text, b"get")
        self.assertTrue(row.items[1].is_null)
        docs = connection.call("COMMAND", "DOCS", "get", "nosuch").items
        self.assertEqual([docs[0].text, len(docs)], [b"get", 2])
        fields = {docs[1].items[at].text: docs[1].items[at + 1] for at in range(0, len(docs[1].items), 2)}
        for field in (b"summary", b"since", b"group", b"complexity"):
            self.assertTrue(fields[field].text, field)
        self.assertEqual(fields[b"group"].text, b"string")
        every = connection.call("COMMAND", "DOCS").items
        self.assertEqual(len(every), 2 * count)
        self.assert_reply(connection, b"*2\r\n$1\r\na\r\n$1\r\nb\r\n", "COMMAND", "GETKEYS", "MSET", "a", "1", "b", "2")
        filtered = connection.call("COMMAND", "LIST", "FILTERBY", "PATTERN", "get*").items
        self.assertIn(b"getdel", {item.text for item in filtered})
        self.assertNotIn(b"set", {item.text for item in filtered})

    def test_debug_sleep_delays_only_its_own_connection(self):
        """The sleeper's reply is still out while connections on every worker are answered."""
        sleeper = self.connect()
        sleeper.send(resp.encode("DEBUG", "SLEEP", "600") + resp.encode("PING"))
        others = [self.connect() for _ in range(4)]
        for other in others:
            self.assert_reply(other, b"+OK\r\n", "SET", "awake", "1")
            self.assert_reply(other, b"$1\r\n1\r\n", "GET", "awake")
        self.assertFalse(has_data(sleeper))
        mine = [row["id"] for row in rows(others[0]) if row["addr"] == sleeper.address]
        self.assert_reply(others[0], b":1\r\n", "CLIENT", "KILL", "ID", mine[0])
        self.assertTrue(sleeper.is_closed())

    def test_debug_sleep_keeps_order(self):
        connection = self.connect()
        connection.send(resp.encode("SET", "order", "1") + resp.encode("DEBUG", "SLEEP", "0.05") +
                        resp.encode("INCR", "order") + resp.encode("DEBUG", "SLEEP", "0"))
        self.assertEqual([connection.read().raw for _ in range(4)], [b"+OK\r\n", b"+OK\r\n", b":2\r\n", b"+OK\r\n"])

    def test_quit_answers_what_came_before(self):
        connection = self.connect()
        connection.send(resp.encode("SET", "q", "1") + resp.encode("QUIT") + resp.encode("SET", "q", "2"))
        self.assertEqual(connection.read_to_end(), b"+OK\r\n+OK\r\n")
        self.assert_reply(self.connect(), b"$1\r\n1\r\n", "GET", "q")


class ConfigFile(unittest.TestCase):
    TEXT = ("# how we run it\nmaxclients 100\n\n  # indented comment\nslowlog-max-len 50\n"
            "SLOWLOG-LOG-SLOWER-THAN 20000\n# the end\n")

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="heatsink-config-")
        self.addCleanup(shutil.rmtree, self.folder)
        self.path = os.path.join(self.folder, "heatsink.conf")
        with open(self.path, "w", encoding="ascii") as file:
            file.write(self.TEXT)

    def read(self):
        with open(self.path, encoding="ascii") as file:
            return file.read()

    def get(self, server, name):
        return server.client(decode_responses=True).config_get(name)[name]

    def test_rewrite_round_trips(self):
        with servers.Heatsink("--config", self.path) as server:
            client = server.client()
            self.assertEqual(self.get(server, "maxclients"), "100")
            client.config_set("maxclients", 150)
            client.config_set("slowlog-log-slower-than", 777)
            self.assertTrue(client.config_rewrite())
            lines = self.read().splitlines()
            for comment in ("# how we run it", "# the end"):
                self.assertIn(comment, lines)
            self.assertEqual([line for line in lines if line.startswith("maxclients")], ["maxclients 150"])
            self.assertLess(lines.index("# how we run it"), lines.index("maxclients 150"))
            self.assertLess(lines.index("maxclients 150"), lines.index("# the end"))
            self.assertEqual(
                [line for line in lines if line.lower().startswith("slowlog-log-slower-than")],
                ["slowlog-log-slower-than 777"])
            before = self.read()
            client.config_rewrite()
            self.assertEqual(self.read().rstrip(), before.rstrip(), "a second rewrite changes nothing")
        with servers.Heatsink("--config", self.path) as server:
            self.assertEqual(self.get(server, "maxclients"), "150")
            self.assertEqual(self.get(server, "slowlog-log-slower-than"), "777")
            self.assertEqual(self.get(server, "slowlog-max-len"), "50")

    def test_rewrite_without_a_file(self):
        with servers.Heatsink() as server:
            self.assertEqual(server.raw().call("CONFIG", "REWRITE").raw,
                             b"-ERR The server is running without a config file\r\n")

    def test_flag_beats_file(self):
        with servers.Heatsink("--config", self.path, "--maxclients", "33") as server:
            self.assertEqual(self.get(server, "maxclients"), "33")
            self.assertEqual(self.get(server, "slowlog-max-len"), "50")

    def test_sighup_reloads(self):
        with servers.Heatsink("--config", self.path) as server:
            connection = server.raw()
            with open(self.path, "w", encoding="ascii") as file:
                file.write(self.TEXT.replace("maxclients 100", "maxclients 300"))
            server.signal(signal.SIGHUP)
            wait_for(self, "the new value", lambda: self.get(server, "maxclients") == "300")
            self.assertEqual(connection.call("PING").raw, b"+PONG\r\n", "connections stay")

            # A broken file changes nothing and is named in the log.
            with open(self.path, "w", encoding="ascii") as file:
                file.write("maxclients 400\nmaxclients none\n")
            server.signal(signal.SIGHUP)
            server.wait_log(re.escape(self.path) + r".*\b2\b.*none")
            self.assertEqual(self.get(server, "maxclients"), "300")
            self.assertEqual(connection.call("PING").raw, b"+PONG\r\n")


class Shutdown(unittest.TestCase):
    def test_shutdown_command(self):
        for words in (["SHUTDOWN"], ["SHUTDOWN", "NOSAVE"], ["shutdown", "save"]):
            with self.subTest(words), servers.Heatsink() as server:
                connection = server.raw()
                connection.call("SET", "kept", "1")
                connection.send(resp.encode(*words))
                self.assertEqual(connection.read_to_end(), b"")
                self.assertEqual(server.wait(), 0)

    def test_shutdown_errors(self):
        with servers.Heatsink() as server:
            connection = server.raw()
            self.assertEqual(connection.call("SHUTDOWN", "MAYBE").raw, b"-ERR syntax error\r\n")
            self.assertEqual(connection.call("SHUTDOWN", "SAVE", "NOSAVE").raw, b"-ERR syntax error\r\n")
            self.assertEqual(connection.call("SHUTDOWN", "ABORT").raw, b"-ERR No shutdown in progress.\r\n")
            self.assertEqual(connection.call("PING").raw, b"+PONG\r\n")

    def test_sigterm_answers_what_is_in_flight(self):
        """The whole pipeline has been read when its first write can be seen; then comes SIGTERM."""
        count = 300
        with servers.Heatsink("--workers", "2", "--sync", "always") as server:
            connection, watcher = server.raw(), server.raw()
            connection.send(resp.encode("SET", "first", "1") + b"".join(
                resp.encode("SET", "k%d" % at, at) for at in range(count)))
            wait_for(self, "the first write", lambda: watcher.call("EXISTS", "first").raw == b":1\r\n")
            server.signal(signal.SIGTERM)
            self.assertEqual(connection.read_to_end(), b"+OK\r\n" * (count + 1))
            self.assertEqual(server.wait(), 0)
            server.start()
            client = server.client()
            self.assertEqual([client.get("k%d" % at) for at in range(count)],
                             [b"%d" % at for at in range(count)])

    def test_sigterm_with_idle_connections(self):
        with servers.Heatsink("--workers", "2") as server:
            idle = [server.raw() for _ in range(10)]
            for connection in idle:
                connection.call("PING")
            server.signal(signal.SIGTERM)
            self.assertEqual(server.wait(), 0)
            for connection in idle:
                self.assertEqual(connection.read_to_end(), b"")

    def test_second_sigterm_exits_at_once(self):
        """A sleeping request keeps the first one waiting; the second does not wait for it."""
        with servers.Heatsink("--workers", "1") as server:
            sleeper, watcher = server.raw(), server.raw()
            sleeper.send(resp.encode("SET", "asleep", "1") + resp.encode("DEBUG", "SLEEP", "600"))
            wait_for(self, "it sleeps", lambda: watcher.call("EXISTS", "asleep").raw == b":1\r\n")
            self.assertEqual(sleeper.read().raw, b"+OK\r\n")
            server.signal(signal.SIGTERM)
            self.assertTrue(watcher.is_closed())
            self.assertTrue(server.running())
            server.signal(signal.SIGTERM)
            server.wait()
            self.assertEqual(sleeper.read_to_end(), b"")


if __name__ == "__main__":
    unittest.main()
