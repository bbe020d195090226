"""Goal: connections behave as a Redis client expects, on every worker.

Method: raw connections to real servers; one connection observes the effects of another. The tests wait for
conditions, never for a fixed time.
"""

import os
import socket
import sys
import unittest
from collections import Counter

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

import resp
import servers
from cases import ServerCase
from checks import client_rows, wait_for


class PartialInput(ServerCase):
    """Input that arrives in pieces. There is one worker, so two round trips on another connection show that it
    has read everything sent before: two, because both connections may be ready in the same loop iteration."""

    args = ("--workers", "1", "--sync", "off")

    PIPELINE = b"".join([
        resp.encode("SET", "{p}a", "1\r\n2"), b"PING\r\n", resp.encode("APPEND", "{p}a", ""),
        resp.encode("GET", "{p}a"), b"*0\r\n\r\n", b"SET {p}b \"x y\"\r\n",
        resp.encode("MGET", "{p}a", "{p}b", "{p}nil"), resp.encode("MULTI"),
        resp.encode("GET", "{p}a"), resp.encode("EXEC"), resp.encode("NOSUCH", ""),
        resp.encode("DEL", "{p}a", "{p}b")])
    REPLIES = (b"+OK\r\n", b"+PONG\r\n", b":4\r\n", b"$4\r\n1\r\n2\r\n", b"+OK\r\n",
               b"*3\r\n$4\r\n1\r\n2\r\n$3\r\nx y\r\n$-1\r\n", b"+OK\r\n", b"+QUEUED\r\n",
               b"*1\r\n$4\r\n1\r\n2\r\n",
               b"-ERR unknown command 'NOSUCH', with args beginning with: '' \r\n",
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
        """A client that shuts down its sending side still receives all replies (as nc -N does)."""
        for _ in range(20):
            connection = self.connect()
            connection.send(resp.encode("SET", "half", "1") + resp.encode("GET", "half"))
            connection.socket.shutdown(socket.SHUT_WR)
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
        """CLIENT LIST has one line for each connection of every worker."""
        connections = [self.connect() for _ in range(5)]
        for at, connection in enumerate(connections):
            connection.call("CLIENT", "SETNAME", "list-%d" % at)
        ids = {connection.call("CLIENT", "ID").number() for connection in connections}
        for connection in connections:
            mine = {row["name"]: row for row in client_rows(connection)
                    if row["name"].startswith("list-")}
            self.assertEqual(set(mine), {"list-%d" % at for at in range(5)})
            self.assertEqual({int(row["id"]) for row in mine.values()}, ids)
            for at, other in enumerate(connections):
                self.assertEqual(mine["list-%d" % at]["addr"], other.address)
                self.assertEqual(mine["list-%d" % at]["laddr"], "127.0.0.1:%d" % self.server.port)

    def test_list_fields(self):
        connection = self.connect()
        mine = connection.call("CLIENT", "ID").text.decode()
        row = client_rows(connection, "ID", mine)
        self.assertEqual(len(row), 1)
        for field in ("id", "addr", "laddr", "fd", "name", "age", "idle", "flags", "db", "sub",
                      "psub", "ssub",
                      "multi", "qbuf", "qbuf-free", "argv-mem", "multi-mem", "obl", "oll", "omem",
                      "tot-mem",
                      "events", "cmd", "user", "redir", "resp"):
            self.assertIn(field, row[0])
        self.assertEqual(row[0]["cmd"], "client|list")
        self.assertEqual(row[0]["db"], "0")
        self.assertEqual(row[0]["multi"], "-1")
        self.assertEqual(row[0]["user"], "default")

    def test_list_filters(self):
        one, two = self.connect(), self.connect()
        ids = [connection.call("CLIENT", "ID").text.decode() for connection in (one, two)]
        self.assertEqual([row["id"] for row in client_rows(one, "ID", ids[1])], ids[1:])
        self.assertEqual({row["id"] for row in client_rows(one, "ID", *ids)}, set(ids))
        self.assertEqual(client_rows(one, "ID", "999999999"), [])
        self.assertTrue(set(ids) <= {row["id"] for row in client_rows(one, "TYPE", "normal")})
        self.assertEqual(client_rows(one, "TYPE", "pubsub"), [])
        self.assertEqual(client_rows(one, "TYPE", "replica"), [])

    def test_info(self):
        connection = self.connect()
        connection.call("CLIENT", "SETNAME", "informer")
        text = connection.call("CLIENT", "INFO").text.decode()
        self.assertEqual(text.count("\n"), 1)
        self.assertIn("name=informer", text)
        self.assertIn("addr=%s " % connection.address, text)

    def test_state_in_the_list(self):
        """CLIENT LIST shows another connection's last command, transaction state and protocol."""
        watcher, other = self.connect(), self.connect()
        mine = other.call("CLIENT", "ID").text.decode()
        other.call("HELLO", "3")
        other.call("MULTI")
        other.call("GET", "a")
        other.call("GET", "b")
        row = client_rows(watcher, "ID", mine)[0]
        self.assertEqual((row["multi"], row["cmd"], row["resp"]), ("2", "get", "3"))
        self.assertIn("x", row["flags"])

    def test_kill_by_id(self):
        killer, victim = self.connect(), self.connect()
        mine = victim.call("CLIENT", "ID").text.decode()
        self.assert_reply(killer, b":1\r\n", "CLIENT", "KILL", "ID", mine)
        self.assertTrue(victim.is_closed())
        self.assert_reply(killer, b":0\r\n", "CLIENT", "KILL", "ID", mine)
        self.assertEqual(client_rows(killer, "ID", mine), [])

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
        """Newer client libraries send CLIENT SETINFO on every connection."""
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
        for words, start in (
                (["HELLO", "3"], b"-NOAUTH HELLO must be called"),
                (["HELLO", "3", "AUTH", "default", "no"], b"-WRONGPASS"),
                (["HELLO", "4", "AUTH", "default", "secret"], b"-NOPROTO"),
                (["GET", "a"], b"-NOAUTH Authentication required.")):
            self.assertEqual(connection.call(*words).raw[:len(start)], start)

    def test_a_password_set_while_running(self):
        """CONFIG SET requirepass holds for new connections; authenticated ones stay authenticated."""
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
    """Connections are distributed evenly; CLIENT LIST ends each line with the connection's worker."""

    args = ("--workers", "2", "--sync", "off")

    def share(self, connections):
        mine = {connection.address for connection in connections}
        return Counter(row["worker"] for row in client_rows(connections[0]) if row["addr"] in mine)

    def alone(self):
        """Opens a connection and waits until no other one exists, not even one that is closing."""
        connection = self.connect()
        wait_for(self, "other connections are gone", lambda: len(client_rows(connection)) == 1)
        return connection

    def test_a_few_connections(self):
        connections = [self.alone()]
        for count in (2, 4, 6, 8):
            while len(connections) < count:
                connections.append(self.connect())
                connections[-1].call("PING")
            self.assertEqual(self.share(connections), {"0": count // 2, "1": count // 2})

    def test_evens_out_after_closing(self):
        """After connections of one worker were closed, new ones go to that worker."""
        connections = [self.alone()] + [self.connect() for _ in range(7)]
        for connection in connections:
            connection.call("PING")
        where = {row["addr"]: row["worker"] for row in client_rows(connections[0])}
        home = where[connections[0].address]
        gone = [connection for connection in connections if where[connection.address] != home]
        self.assertEqual(len(gone), 4)
        for connection in gone:
            connection.close()
            connections.remove(connection)
        wait_for(self, "closed connections are gone", lambda: len(client_rows(connections[0])) == 4)
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

            # A closed connection makes room for another.
            connections.pop().close()
            wait_for(self, "room for another", lambda: self.accept_client(server))

            # So does a higher limit.
            reply = connections[0].call("CONFIG", "SET", "maxclients", "50")
            self.assertEqual(reply.raw, b"+OK\r\n")
            more = [server.raw() for _ in range(20)]
            for connection in more:
                self.assertEqual(connection.call("PING").raw, b"+PONG\r\n")

    @staticmethod
    def accept_client(server):
        connection = server.raw()
        try:
            connection.send(resp.encode("PING"))
            return connection.read().raw == b"+PONG\r\n"
        except (OSError, resp.Closed):
            return False


if __name__ == "__main__":
    unittest.main()
