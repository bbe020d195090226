"""Goal: a message says what is wrong, where, and what to do, in the reply to the client and in the log.

Method: real servers with one deliberate mistake each: a wrong password for the servers behind heatsink, TLS with a
plain port and the reverse, on both sides. Also changes of the configuration, of rules and of users, which the log must
name together with their author.
"""
import contextlib
import re
import socket
import ssl
import time
import unittest

import tls
from checks import start_waiting
from cluster import Cluster
from resp import Connection
from servers import GUARD_S, Heatsink, Redis, ReservedPort


def call(server, *args):
    with Connection(server.port, guard_s=GUARD_S) as connection:
        return connection.call(*args).text.decode()


class Login(unittest.TestCase):
    """A wrong password for the servers: the error must not say that a server is down, or that waiting helps."""

    NAMED = re.compile(r"cannot log in as '(\w+)': check engine-user, engine-password \((.*)\)")

    def assert_said(self, user, reason, *args):
        """Every kind of request gets the message, and the log has it once."""
        server, line = start_waiting(self, "warn .*cannot log in", "--engine-timeout", "60000", *args)
        for words in (("GET", "k"), ("LPUSH", "k", "v"), ("BLPOP", "k", "0"), ("DBSIZE",)):
            said = call(server, *words)
            self.assertEqual(self.NAMED.search(said).group(1), user, said)
            self.assertIn(reason, said)
            self.assertTrue(said.startswith("ERR "), said)
            self.assertTrue(said.endswith("; not sent"), said)
            self.assertNotIn("does not answer", said)
        self.assertEqual(self.NAMED.search(line).group(1), user, line)
        self.assertNotIn("answer", line)

    def test_one_server(self):
        with Redis("--requirepass", "right") as redis:
            url = f"redis://127.0.0.1:{redis.port}"
            for flags, user, reason in (
                    ((), "default", "it requires a password"),
                    (("--engine-password", "wrong"), "default", "WRONGPASS"),
                    (("--engine-user", "bob", "--engine-password", "right"), "bob", "WRONGPASS")):
                with self.subTest(flags):
                    self.assert_said(user, reason, "--engine", url, *flags)

    def test_a_cluster(self):
        with Cluster(masters=3, replicas=0, password="right") as cluster:
            for password, reason in ((None, "it requires a password"), ("wrong", "WRONGPASS")):
                url = "cluster://" + ",".join(f"127.0.0.1:{node.port}" for node in cluster.nodes)
                flags = ("--engine-password", password) if password else ()
                with self.subTest(password):
                    self.assert_said("default", reason, "--engine", url, *flags)

    def test_it_works_when_the_password_is_right(self):
        """The server's password is changed to the one that heatsink uses."""
        with Redis("--requirepass", "other") as redis, \
                Heatsink("--engine", f"redis://127.0.0.1:{redis.port}", "--engine-password", "right",
                         "--engine-timeout", "60000") as server:
            self.assertIn("cannot log in", call(server, "GET", "k"))
            with Connection(redis.port, guard_s=GUARD_S) as connection:
                connection.call("AUTH", "other")
                connection.call("CONFIG", "SET", "requirepass", "right")
            said = call(server, "SET", "k", "v")
            while "cannot log in" in said:
                said = call(server, "SET", "k", "v")
            self.assertEqual(said, "OK")


class EngineTls(unittest.TestCase):
    """TLS with a server's plain port, and plain text with its TLS port."""

    @classmethod
    def setUpClass(cls):
        cls.certificates = tls.Certificates()
        cls.addClassCleanup(cls.certificates.close)
        port = ReservedPort()
        cls.addClassCleanup(port.release)
        cls.redis = Redis("--tls-port", port.number, *cls.certificates.options())
        cls.addClassCleanup(cls.redis.close)
        cls.tls_port = port.number

    def assert_said(self, url, why):
        """A client gets the message, and the log has it."""
        path = self.certificates.path
        server, _ = start_waiting(
            self, why, "--engine", url, "--engine-timeout", "300", "--engine-tls-ca-cert-file",
            path("ca.pem"), "--engine-tls-cert-file", path("client.pem"), "--engine-tls-key-file",
            path("client.key"))
        # A plain server may wait for more handshake bytes, so the first errors can be less specific.
        guard = time.monotonic() + GUARD_S
        while re.search("not ready yet|no server has answered yet|did not answer in time|"
                        "could not be reached in time", said := call(server, "GET", "k")):
            if time.monotonic() > guard:
                break
        self.assertRegex(said, why)

    def test_tls_with_a_plain_port(self):
        for scheme in ("rediss", "clusters"):
            with self.subTest(scheme):
                self.assert_said(f"{scheme}://127.0.0.1:{self.redis.port}",
                                 r"TLS.* needs redis:// or cluster://")

    def test_plain_text_with_a_tls_port(self):
        for scheme in ("redis", "cluster"):
            with self.subTest(scheme):
                self.assert_said(f"{scheme}://127.0.0.1:{self.tls_port}",
                                 r"TLS.* needs rediss:// or clusters://")


class ClientTls(unittest.TestCase):
    """The same mistakes made by clients of heatsink."""

    @classmethod
    def setUpClass(cls):
        cls.certificates = tls.Certificates()
        cls.addClassCleanup(cls.certificates.close)

    def say_hello(self, port):
        """Sends the first bytes of a TLS handshake to a plain port; returns the answer."""
        context = ssl.create_default_context(cafile=self.certificates.path("ca.pem"))
        came, goes = ssl.MemoryBIO(), ssl.MemoryBIO()
        with contextlib.suppress(ssl.SSLWantReadError):
            context.wrap_bio(came, goes, server_hostname="localhost").do_handshake()
        with socket.create_connection(("127.0.0.1", port), timeout=GUARD_S) as connection:
            connection.sendall(goes.read())
            answer = b""
            with contextlib.suppress(ConnectionError):
                while more := connection.recv(1000):
                    answer += more
            return answer

    def test_tls_with_the_plain_port(self):
        with Heatsink() as server:
            self.assertEqual(self.say_hello(server.port),
                             b"-ERR this port does not speak TLS: use the tls-port\r\n")
            server.wait_log(r"warn  client at 127\.0\.0\.1:\d+ speaks TLS on the plain port: set tls-port here, or "
                            "turn TLS off in the client")

    def test_tls_with_the_plain_port_of_a_server_that_has_both(self):
        with tls.server(self.certificates) as server:
            self.say_hello(server.port)
            server.wait_log(r"speaks TLS on the plain port: connect it to the tls-port")

    def test_plain_text_with_the_tls_port(self):
        with tls.server(self.certificates) as server:
            for text in (b"*1\r\n$4\r\nPING\r\n", b"PING\r\n"):
                with Connection(server.tls_port, guard_s=GUARD_S) as connection:
                    connection.send(text)
                    self.assertEqual(connection.read_to_end(),
                                     b"-ERR this port speaks TLS only: connect with TLS (redis-cli "
                                     b"--tls), or use the plain port\r\n")
            server.wait_log(r"client at 127\.0\.0\.1:\d+: TLS failed: the client sent plain text to the tls-port")

    def test_a_value_that_looks_like_it(self):
        """Only the first bytes of a connection are checked for TLS."""
        with Heatsink() as server, Connection(server.port, guard_s=GUARD_S) as connection:
            self.assertEqual(connection.call("SET", "k", "v").raw, b"+OK\r\n")
            connection.send(b"*2\r\n$3\r\nGET\r\n$2\r\n")  # the server may read this alone or with the next bytes
            connection.send(b"\x16\x03\r\n")
            self.assertEqual(connection.read().raw, b"$-1\r\n")


class Starting(unittest.TestCase):
    def test_nothing_is_written_to_servers(self):
        """In front of servers, the log suggests a command that writes nothing."""
        with Heatsink() as server:
            server.wait_log(r"try: redis-cli -p \d+ set hello world")
        with Redis() as redis, Heatsink("--engine", f"redis://127.0.0.1:{redis.port}") as server:
            server.wait_log(r"try: redis-cli -p \d+ heat top")
            self.assertNotIn("set hello", "\n".join(server.log))


class Changes(unittest.TestCase):
    """The log names every change and its author."""

    def test_all_of_them(self):
        with Heatsink("--user", "ops on >hush ~* &* +@all") as server, \
                Connection(server.port, guard_s=GUARD_S) as plain, \
                Connection(server.port, guard_s=GUARD_S) as ops:
            self.assertEqual(ops.call("AUTH", "ops", "hush").raw, b"+OK\r\n")
            for connection, user in ((plain, "default"), (ops, "ops")):
                address = "127.0.0.1:%d" % connection.socket.getsockname()[1]
                for request, shown in (
                        ("CONFIG SET maxclients 500 timeout 60", None),
                        ("CONFIG SET requirepass s3cret", "CONFIG SET requirepass (redacted)"),
                        ("config set tls-key-file-pass s3cret timeout 0",
                         "config set tls-key-file-pass (redacted) timeout 0"),
                        ("HEAT RULE SET feed:* cache stale=100ms", None),
                        ("HEAT RULE DEL feed:*", None),
                        ("HEAT MITIGATE observe", None),
                        ("ACL SETUSER bob on >s3cret #%s ~app:* +get" % ("0" * 64),
                         "ACL SETUSER bob on (redacted) (redacted) ~app:* +get"),
                        ("ACL DELUSER bob", None),
                        ("CONFIG SET requirepass ", "CONFIG SET requirepass (redacted)")):
                    with self.subTest(user=user, request=request):
                        reply = connection.call(*request.split(" "))
                        self.assertFalse(reply.is_error, reply.raw)
                        server.wait_log("info  " + re.escape(
                            f"{shown or request}: done for user {user} at {address}") + "$")
            self.assertNotIn("s3cret", "\n".join(server.log))

    def test_unchanged_state_is_not_logged(self):
        with Heatsink() as server, Connection(server.port, guard_s=GUARD_S) as connection:
            for request in ("CONFIG SET maxclients nonsense", "CONFIG GET *", "HEAT RULE LIST",
                            "HEAT RULE DEL nosuch", "HEAT MITIGATE", "ACL DELUSER nobody",
                            "ACL SETUSER bob nonsense"):
                connection.call(*request.split(" "))
            connection.call("HEAT", "MITIGATE", "off")
            server.wait_log("HEAT MITIGATE off: done for user default")
            self.assertEqual(sum("done for" in line for line in server.log), 1)


if __name__ == "__main__":
    unittest.main()
