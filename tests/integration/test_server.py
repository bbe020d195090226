"""Goal: the commands of an operator work: INFO, CONFIG, SLOWLOG, COMMAND, DEBUG, and the configuration file.

Method: raw connections. Counters are compared with what the test did, a rewritten configuration file with what was
set, and with a server started from it.
"""

import os
import re
import select
import shutil
import signal
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

import resp
import servers
from cases import ServerCase
from checks import client_rows, wait_for


def has_data(connection):
    return bool(select.select([connection.socket], [], [], 0)[0])


class Server(ServerCase):
    args = ("--workers", "2", "--sync", "off")

    SECTIONS = {
        "server": ["redis_version", "redis_mode", "os", "process_id", "tcp_port",
                   "uptime_in_seconds",
                   "uptime_in_days", "config_file"],
        "clients": ["connected_clients", "maxclients", "blocked_clients"],
        "memory": ["used_memory", "used_memory_human", "used_memory_rss", "maxmemory"],
        "persistence": ["loading", "aof_enabled"],
        "stats": ["total_connections_received", "total_commands_processed",
                  "total_net_input_bytes", "total_net_output_bytes", "rejected_connections",
                  "expired_keys",
                  "evicted_keys", "keyspace_hits", "keyspace_misses"],
    }

    def info(self, connection, *sections):
        reply = connection.call("INFO", *sections)
        self.assertIn(reply.kind, b"$=")
        lines = reply.text.decode().split("\r\n")
        return {name: value for name, colon, value in (line.partition(":") for line in lines)
                if colon}

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

        def connected():
            return int(self.info(connection, "clients")["connected_clients"])
        wait_for(self, "other connections are gone", lambda: connected() == 1)
        other = self.connect()
        other.call("PING")
        self.assertEqual(connected(), 2)

    def test_config_get_and_set(self):
        connection = self.connect()
        names = [item.text for item in connection.call("CONFIG", "GET", "max*").items[0::2]]
        self.assertIn(b"maxclients", names)
        both = connection.call("CONFIG", "GET", "maxclients", "slowlog-*").items
        self.assertTrue({b"maxclients", b"slowlog-max-len"} <= {item.text for item in both[0::2]})
        self.assertEqual(connection.call("CONFIG", "GET", "nosuch").raw, b"*0\r\n")
        self.assert_reply(connection, b"+OK\r\n", "CONFIG", "SET", "slowlog-max-len", "77",
                          "maxclients", "500")
        self.assertEqual(connection.call("CONFIG", "GET", "slowlog-max-len").items[1].text, b"77")
        self.assertEqual(connection.call("CONFIG", "GET", "MAXCLIENTS").items[1].text, b"500")
        # CONFIG SET sets all options or none.
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
        fields = {docs[1].items[at].text: docs[1].items[at + 1]
                  for at in range(0, len(docs[1].items), 2)}
        for field in (b"summary", b"since", b"group", b"complexity"):
            self.assertTrue(fields[field].text, field)
        self.assertEqual(fields[b"group"].text, b"string")
        every = connection.call("COMMAND", "DOCS").items
        self.assertEqual(len(every), 2 * count)
        self.assert_reply(connection, b"*2\r\n$1\r\na\r\n$1\r\nb\r\n", "COMMAND", "GETKEYS", "MSET",
                          "a", "1", "b", "2")
        filtered = connection.call("COMMAND", "LIST", "FILTERBY", "PATTERN", "get*").items
        self.assertIn(b"getdel", {item.text for item in filtered})
        self.assertNotIn(b"set", {item.text for item in filtered})

    def test_debug_sleep_delays_only_its_own_connection(self):
        """Connections on every worker are answered before the reply to DEBUG SLEEP."""
        sleeper = self.connect()
        sleeper.send(resp.encode("DEBUG", "SLEEP", "600") + resp.encode("PING"))
        others = [self.connect() for _ in range(4)]
        for other in others:
            self.assert_reply(other, b"+OK\r\n", "SET", "awake", "1")
            self.assert_reply(other, b"$1\r\n1\r\n", "GET", "awake")
        self.assertFalse(has_data(sleeper))
        mine = [row["id"] for row in client_rows(others[0]) if row["addr"] == sleeper.address]
        self.assert_reply(others[0], b":1\r\n", "CLIENT", "KILL", "ID", mine[0])
        self.assertTrue(sleeper.is_closed())

    def test_debug_sleep_keeps_order(self):
        connection = self.connect()
        connection.send(resp.encode("SET", "order", "1") + resp.encode("DEBUG", "SLEEP", "0.05") +
                        resp.encode("INCR", "order") + resp.encode("DEBUG", "SLEEP", "0"))
        self.assertEqual([connection.read().raw for _ in range(4)],
                         [b"+OK\r\n", b"+OK\r\n", b":2\r\n", b"+OK\r\n"])

    def test_quit_answers_earlier_requests(self):
        connection = self.connect()
        connection.send(resp.encode("SET", "q", "1") + resp.encode("QUIT") +
                        resp.encode("SET", "q", "2"))
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
        with resp.Connection(server.port) as connection:
            return connection.call("CONFIG", "GET", name).items[1].text.decode()

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
            self.assertEqual([line for line in lines if line.startswith("maxclients")],
                             ["maxclients 150"])
            self.assertLess(lines.index("# how we run it"), lines.index("maxclients 150"))
            self.assertLess(lines.index("maxclients 150"), lines.index("# the end"))
            self.assertEqual(
                [line for line in lines if line.lower().startswith("slowlog-log-slower-than")],
                ["slowlog-log-slower-than 777"])
            before = self.read()
            client.config_rewrite()
            self.assertEqual(self.read().rstrip(), before.rstrip(),
                             "a second rewrite changes nothing")
        with servers.Heatsink("--config", self.path) as server:
            self.assertEqual(self.get(server, "maxclients"), "150")
            self.assertEqual(self.get(server, "slowlog-log-slower-than"), "777")
            self.assertEqual(self.get(server, "slowlog-max-len"), "50")

    def test_rewrite_preserves_other_lines_and_the_file_mode(self):
        password = "a \"quote\", a \\, a\nline\tand \x01"
        os.chmod(self.path, 0o640)
        link = self.path + ".link"
        os.symlink(self.path, link)
        self.addCleanup(os.unlink, link)
        with servers.Heatsink("--config", link) as server:
            client = server.client()
            client.config_set("requirepass", password)
            server.client(password=password).config_rewrite()
        self.assertTrue(os.path.islink(link))
        self.assertEqual(os.stat(self.path).st_mode & 0o777, 0o640)
        self.assertEqual(sum(line.startswith("protected") for line in self.read().splitlines()), 0)
        with servers.Heatsink("--config", self.path, "--maxclients", "10") as server:
            self.assertTrue(server.client(password=password).ping())

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

            # A file with an error changes nothing and is named in the log.
            with open(self.path, "w", encoding="ascii") as file:
                file.write("maxclients 400\nmaxclients none\n")
            server.signal(signal.SIGHUP)
            server.wait_log(re.escape(self.path) + r".*\b2\b.*none")
            self.assertEqual(self.get(server, "maxclients"), "300")
            self.assertEqual(connection.call("PING").raw, b"+PONG\r\n")


if __name__ == "__main__":
    unittest.main()
