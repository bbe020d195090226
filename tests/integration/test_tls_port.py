"""Goal: clients on the TLS port see the same as on the plain one; a client that is refused gets an error and costs
bounded memory and time; certificates can be renewed while the server runs.

Method: real servers with certificates made for the test; redis-py, redis-cli and openssl's s_client as ready-made
clients, and a client of the tests (lib/tls.py) that controls every byte: it sends slowly, closes one direction, sends
garbage, or stops in the middle of a handshake. A "canary" is a good connection that must work meanwhile.
"""

import contextlib
import os
import random
import re
import signal
import socket
import ssl
import subprocess
import sys
import unittest
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

import resp
import servers
import tls
from cases import FolderCase
from checks import GUARD_S, heap_bytes, KIB, memory_slack, MIB, wait_for

SANITIZERS = ("address",)


def info(connection, name):
    text = connection.call("INFO", "everything").text.decode()
    return int(re.search(rf"(?m)^{name}:(\d+)\r$", text).group(1))


class TlsCase(unittest.TestCase):
    """Makes the certificates for the class."""

    @classmethod
    def setUpClass(cls):
        cls.certificates = tls.Certificates()
        cls.addClassCleanup(cls.certificates.close)

    def run_server(self, *args, **options):
        stack = contextlib.ExitStack()
        self.addCleanup(stack.close)
        return stack.enter_context(tls.server(self.certificates, "--sync", "off", *args, **options))

    def secure(self, server, name="client", version=None, handshake=True):
        connection = tls.Connection(server.tls_port, self.certificates.context(name, version),
                                    handshake)
        self.addCleanup(connection.close)
        return connection

    def plain(self, port):
        connection = resp.Connection(port)
        self.addCleanup(connection.close)
        return connection

    def assert_works(self, connection):
        self.assertEqual(connection.call("ECHO", "usable").raw, b"$6\r\nusable\r\n")

    def refused(self, server, name):
        """True if the server refuses this certificate. Under TLSv1.3 a client learns that with its first reply
        only."""
        try:
            return self.secure(server, name).call("PING").raw != b"+PONG\r\n"
        except (ssl.SSLError, ConnectionError, resp.Closed):
            return True


class Clients(TlsCase):
    """One server for good clients, and for bad ones at the same time."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.server = cls.enterClassContext(tls.server(
            cls.certificates, "--sync", "off", "--workers", "2", "--partitions", "2",
            "--output-limit", "1mb", "--tls-handshake-timeout", str(servers.GUARD_S)))
        cls.slack = memory_slack()

    @classmethod
    def enterClassContext(cls, manager):
        entered = manager.__enter__()
        cls.addClassCleanup(manager.__exit__, None, None, None)
        return entered

    def connect(self, **options):
        return self.secure(self.server, **options)

    def canary(self):
        return self.plain(self.server.port)

    def test_redis_py(self):
        client = self.server.client(**self.certificates.redis_py())
        client.connection_pool.connection_kwargs["port"] = self.server.tls_port
        self.assertTrue(client.set("greeting", "hello"))
        self.assertEqual(client.get("greeting"), b"hello")
        pipeline = client.pipeline(transaction=False)
        for at in range(3000):
            pipeline.set("many:%d" % at, "x" * (at % 100))
        self.assertEqual(set(pipeline.execute()), {True})
        self.assertEqual(self.canary().call("GET", "greeting").raw, b"$5\r\nhello\r\n")

    def test_redis_cli(self):
        path = self.certificates.path
        done = subprocess.run(
            ["redis-cli", "-p", str(self.server.tls_port), "--tls", "--cacert", path("ca.pem"),
             "--cert", path("client.pem"), "--key", path("client.key"), "ECHO", "over tls"],
            capture_output=True, text=True, timeout=GUARD_S, check=False)
        if "Unrecognized option" in done.stderr:
            self.skipTest("this redis-cli was built without TLS")
        self.assertEqual((done.returncode, done.stdout), (0, "over tls\n"), done.stderr)

    def test_both_versions(self):
        for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
            connection = self.connect(version=version)
            self.assertEqual(connection.ssl.version(), version.name.replace("_", "."))
            self.assertEqual(connection.server_name(), "server")
            self.assert_works(connection)

    def test_a_byte_at_a_time(self):
        connection = self.connect(handshake=False)
        connection.handshake(piece=1)
        connection.send_slowly(resp.encode("SET", "slow", "value") + resp.encode("GET", "slow"))
        self.assertEqual(connection.read().raw, b"+OK\r\n")
        self.assertEqual(connection.read().raw, b"$5\r\nvalue\r\n")

    def test_large_values(self):
        """Values larger than a socket's buffer, in records of all sizes, in both directions, several at once."""
        value = random.Random(1).randbytes(24 * MIB)
        connection = self.connect()
        self.assertEqual(connection.call("SET", "large", value).raw, b"+OK\r\n")
        self.assertEqual(connection.call("STRLEN", "large").number(), len(value))
        self.assertEqual(connection.call("GET", "large").text, value)
        for size in (1, 16383, 16384, 16385, 65535, 65536, 65537, 200000):
            connection.send(resp.encode("SET", "sized", value[:size]) + resp.encode("GET", "sized") +
                            resp.encode("PING"))
            self.assertEqual(connection.read().raw, b"+OK\r\n")
            self.assertEqual(connection.read().text, value[:size])
            self.assertEqual(connection.read().raw, b"+PONG\r\n")
        self.assertEqual(connection.call("DEL", "large").raw, b":1\r\n")

    def test_a_large_reply_is_not_held_twice(self):
        """heatsink encrypts a reply piece by piece as the client takes it. The peak memory of the process shows
        this."""
        size = 48 * MIB
        plain, reader = self.canary(), self.connect()
        plain.call("SET", "huge", "x" * size)
        reader.call("GET", "huge")  # brings the store's pages into memory first
        with open("/proc/%d/clear_refs" % self.server.pid, "w", encoding="ascii") as file:
            file.write("5")  # resets the peak
        before = self.memory_peak()
        self.assertEqual(reader.call("GET", "huge").text, b"x" * size)
        self.assertLess(self.memory_peak() - before, size * 1.5 * self.slack)
        plain.call("DEL", "huge")

    def memory_peak(self):
        with open("/proc/%d/status" % self.server.pid, encoding="ascii") as status:
            return int(re.search(r"VmHWM:\s+(\d+) kB", status.read()).group(1)) * KIB

    def test_pipeline(self):
        connection, count = self.connect(), 20000
        connection.call("DEL", "counter")
        connection.send(resp.encode("INCR", "counter") * count)
        for at in range(count):
            self.assertEqual(connection.read().raw, b":%d\r\n" % (at + 1))

    def test_slow_reader_gets_everything(self):
        connection = self.connect()
        connection.call("SET", "piece", "x" * 1000)
        connection.send(resp.encode("GET", "piece") * 900)
        self.assert_works(self.canary())
        for _ in range(900):
            self.assertEqual(len(connection.read().text), 1000)

    def test_slow_reader_is_cut_off(self):
        canary = self.canary()
        canary.call("SET", "big", "x" * 100000)
        victim, asked, before = self.connect(), 600, heap_bytes(self.server)
        cut = info(canary, "output_limit_disconnections")
        with contextlib.suppress(OSError):
            for _ in range(asked):
                victim.send(resp.encode("GET", "big"))
        wait_for(self, "it is cut off",
                 lambda: info(canary, "output_limit_disconnections") > cut)
        self.assertLess(heap_bytes(self.server) - before, 32 * MIB * self.slack)
        with contextlib.suppress(ssl.SSLError):
            self.assertLess(len(victim.read_to_end()), asked * 100000)
        self.assert_works(canary)

    def test_half_closed_by_tcp(self):
        """As on the plain port: requests sent before the close are answered, then the connection ends."""
        connection = self.connect()
        connection.send(resp.encode("SET", "half", "1") + resp.encode("GET", "half"))
        connection.socket.shutdown(socket.SHUT_WR)
        self.assertEqual(connection.read_to_end(), b"+OK\r\n$1\r\n1\r\n")
        self.assertTrue(connection.clean)

    def test_half_closed_by_tls(self):
        for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
            connection = self.connect(version=version)
            connection.ssl.write(resp.encode("SET", "half", "2") + resp.encode("GET", "half"))
            with contextlib.suppress(ssl.SSLWantReadError):
                connection.ssl.unwrap()
            connection.flush()  # the requests and close_notify together
            # Python reads nothing after its own close_notify, so read below it: two replies in one record, the
            # server's close_notify, and the end.
            data = b""
            while more := connection.socket.recv(1 << 16):
                data += more
            kinds, at = [], 0
            while at < len(data):
                kinds.append(data[at])
                at += 5 + int.from_bytes(data[at + 3:at + 5], "big")
            self.assertEqual(kinds[-2:], [23, 21 if version is ssl.TLSVersion.TLSv1_2 else 23])

    def test_quit_ends_cleanly(self):
        connection = self.connect()
        connection.send(resp.encode("QUIT"))
        self.assertEqual(connection.read_to_end(), b"+OK\r\n")
        self.assertTrue(connection.clean)

    def test_broken_requests(self):
        connection = self.connect()
        connection.send(b"*1\r\nnonsense\r\n")
        self.assertEqual(connection.read_to_end(),
                         b"-ERR Protocol error: expected '$', got 'n'\r\n")

    def test_numbers(self):
        canary = self.canary()
        wait_for(self, "those of other tests are gone", lambda: info(canary, "tls_clients") == 0)
        connections = [self.connect() for _ in range(5)]
        for connection in connections:
            self.assert_works(connection)
        self.assertEqual(info(canary, "tls_clients"), 5)
        self.assertEqual(info(canary, "tls_port"), self.server.tls_port)
        self.assertEqual(info(canary, "tcp_port"), self.server.port)
        failures = info(canary, "tls_handshake_failures")
        self.assertTrue(self.refused(self.server, None))
        wait_for(self, "it is counted",
                 lambda: info(canary, "tls_handshake_failures") == failures + 1)
        url = "http://127.0.0.1:%d/metrics" % self.server.http_port
        with urllib.request.urlopen(url, timeout=GUARD_S) as page:
            text = page.read().decode()
        self.assertIn("\nheatsink_tls_clients 5\n", text)
        self.assertIn("\nheatsink_tls_handshake_failures_total %d\n" % (failures + 1), text)
        connections[0].close()
        wait_for(self, "one is gone", lambda: info(canary, "tls_clients") == 4)

    def assert_failures(self, more, reason=""):
        """A context in which this many handshakes must fail, with the reason in the log."""
        canary = self.canary()
        before, seen = info(canary, "tls_handshake_failures"), len(self.server.log)

        @contextlib.contextmanager
        def counting():
            yield
            wait_for(self, "failures are counted",
                     lambda: info(canary, "tls_handshake_failures") >= before + more)
            self.assertEqual(info(canary, "tls_handshake_failures"), before + more)
            wait_for(self, "the log says so", lambda: len(
                [line for line in self.server.log[seen:]
                 if re.search(r"client at 127\.0\.0\.1:\d+: TLS failed: .*" + reason, line)]) >= more)
            self.assert_works(canary)
        return counting()

    def test_plain_text_is_not_understood(self):
        for text in (b"*3\r\n$3\r\nSET\r\n$7\r\nplanted\r\n$1\r\n1\r\n", b"SET planted 1\r\n",
                     b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\nSET planted 1\r\n"):
            with self.assert_failures(1):
                connection = self.plain(self.server.tls_port)
                connection.send(text)
                answer = connection.read_to_end()
                self.assertRegex(answer, rb"^(-ERR this port speaks TLS only.*\r\n)?$")
        self.assertEqual(self.canary().call("EXISTS", "planted").raw, b":0\r\n")

    def test_garbage(self):
        rng = random.Random(5)
        with self.assert_failures(24):
            for size in (10, 100, 20000, 200000) * 6:
                connection = self.plain(self.server.tls_port)
                with contextlib.suppress(OSError):
                    connection.send(b"\x7f" + rng.randbytes(size))
                self.assertLess(len(connection.read_to_end()), 100)

    def test_garbage_after_a_handshake(self):
        connection = self.connect()
        self.assert_works(connection)
        connection.socket.sendall(b"\x17\x03\x03\x00\x20" + b"x" * 32)
        self.assertTrue(connection.is_closed())
        self.assert_works(self.canary())

    def test_left_in_the_middle(self):
        with self.assert_failures(1, "the client closed the connection during the handshake"):
            connection = self.connect(handshake=False)
            with contextlib.suppress(ssl.SSLWantReadError):
                connection.ssl.do_handshake()
            connection.socket.sendall(connection.outgoing.read()[:50])
            connection.close()
        with self.assert_failures(0):  # a port check: connects and leaves
            self.plain(self.server.tls_port).close()

    def test_client_certificates_accepted(self):
        with self.assert_failures(1, "did not return a certificate"):
            self.assertTrue(self.refused(self.server, None))
        with self.assert_failures(1, "local issuer"):
            self.assertTrue(self.refused(self.server, "stranger"))
        with self.assert_failures(1, "expired"):
            self.assertTrue(self.refused(self.server, "expired"))
        self.assertFalse(self.refused(self.server, "client"))

    def test_renegotiation_is_refused(self):
        """s_client starts a renegotiation after a line "R". It is refused and the connection stays open, until
        s_client gives up."""
        path = self.certificates.path
        done = subprocess.run(
            ["openssl", "s_client", "-connect", "127.0.0.1:%d" % self.server.tls_port, "-tls1_2",
             "-cert", path("client.pem"), "-key", path("client.key"), "-CAfile", path("ca.pem")],
            input=b"R\n", capture_output=True, timeout=GUARD_S, check=False)
        self.assertIn(b"RENEGOTIATING", done.stdout + done.stderr)
        self.assertIn(b"no renegotiation", done.stdout + done.stderr)
        self.assert_works(self.canary())

    def test_a_hello_without_end(self):
        """An unauthenticated client costs bounded memory: the largest handshake message, on many connections."""
        head = bytes.fromhex("160301400001020100")
        before, most = heap_bytes(self.server), 100
        with self.assert_failures(most, "longer than 131072 bytes"):
            crowd = [self.plain(self.server.tls_port) for _ in range(most)]
            for connection in crowd:
                connection.send(head + bytes(16380))
            self.assert_works(self.canary())
            for connection in crowd:
                with contextlib.suppress(OSError):
                    for _ in range(12):
                        connection.send(b"\x16\x03\x01\x40\x00" + bytes(16384))
                connection.read_to_end()
            self.assertLess(heap_bytes(self.server) - before, most * 512 * KIB * self.slack)

    def test_idle_connections_are_small(self):
        """A used and idle connection holds at most 44 KiB, because record buffers are freed."""
        self.canary().call("SET", "idle", "x" * 20000)
        for connection in [self.connect() for _ in range(50)]:  # fills shared pools
            connection.call("GET", "idle")
        before, count = heap_bytes(self.server), 200
        crowd = [self.connect() for _ in range(count)]
        for connection in crowd:
            self.assertEqual(connection.call("SET", "idle", "y" * 20000).raw, b"+OK\r\n")
            self.assertEqual(len(connection.call("GET", "idle").text), 20000)
        self.assertLess((heap_bytes(self.server) - before) / count, 44 * KIB * self.slack)

    def test_come_and_go(self):
        before = heap_bytes(self.server)
        for at in range(300):
            connection = self.connect(handshake=at % 3 != 0)
            if at % 3 == 1:
                connection.send(resp.encode("GET", "x"))
            elif at % 3 == 2:
                connection.send(b"*2\r\n$3\r\nGE")
            connection.close()
        canary = self.canary()
        wait_for(self, "all are gone", lambda: info(canary, "tls_clients") == 0)
        self.assertLess(heap_bytes(self.server) - before, 16 * MIB * self.slack)


class TwoPorts(TlsCase):
    """Which of the two ports are open, and when they close."""

    def test_tls_alone(self):
        server = self.run_server(plain=False)
        self.assertIsNone(server.port)
        connection = self.secure(server)
        self.assertEqual(info(connection, "tcp_port"), server.tls_port)
        server.wait_log(r"tls on 127\.0\.0\.1:%d$" % server.tls_port)
        server.wait_log(r"try: redis-cli --tls -p %d " % server.tls_port)
        self.assertEqual(connection.call("CONFIG", "GET", "port").items[1].text, b"0")

    def test_every_address(self):
        server = self.run_server("--bind", "127.0.0.1 ::1")
        with socket.create_connection(("::1", server.tls_port), GUARD_S) as below:
            with self.certificates.context().wrap_socket(below, server_hostname="::1") as client:
                client.sendall(b"PING\r\n")
                self.assertEqual(client.recv(100), b"+PONG\r\n")

    def test_client_certificates_required_optional_or_off(self):
        server = self.run_server(auth="optional")
        self.assertFalse(self.refused(server, None))
        self.assertFalse(self.refused(server, "client"))
        self.assertTrue(self.refused(server, "stranger"))
        server = self.run_server(auth="no")
        self.assertFalse(self.refused(server, None))
        self.assertFalse(self.refused(server, "stranger"))

    def test_a_password_is_wanted_here_too(self):
        server = self.run_server("--requirepass", "secret", auth="no")
        connection = self.secure(server)
        self.assertIn(b"-NOAUTH", connection.call("GET", "a").raw)
        self.assertEqual(connection.call("AUTH", "secret").raw, b"+OK\r\n")

    def test_versions_and_ciphers(self):
        server = self.run_server("--tls-protocols", "TLSv1.2", "--tls-ciphers",
                                 "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-ECDSA-AES256-GCM-SHA384",
                                 "--tls-prefer-server-ciphers", "yes")
        with self.assertRaises((ssl.SSLError, OSError)):
            self.secure(server, version=ssl.TLSVersion.TLSv1_3)
        context = self.certificates.context()
        context.set_ciphers("ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-ECDSA-AES128-GCM-SHA256")
        connection = tls.Connection(server.tls_port, context)
        self.addCleanup(connection.close)
        self.assertEqual(connection.ssl.cipher()[0], "ECDHE-ECDSA-AES128-GCM-SHA256")
        server = self.run_server("--tls-ciphersuites", "TLS_AES_128_GCM_SHA256")
        self.assertEqual(self.secure(server).ssl.cipher()[0], "TLS_AES_128_GCM_SHA256")

    def test_one_too_many(self):
        server = self.run_server("--maxclients", "1")
        self.assert_works(self.secure(server))
        self.assertEqual(self.plain(server.tls_port).read_to_end(), b"")

    def test_a_handshake_takes_too_long(self):
        server = self.run_server("--tls-handshake-timeout", "1")
        admin, done = self.plain(server.port), None

        def shake_hands():
            nonlocal done
            try:
                done = self.secure(server)
                return done.call("PING").raw == b"+PONG\r\n"
            except (ssl.SSLError, ConnectionError, resp.Closed):
                return False  # a busy machine may take longer than a second
        wait_for(self, "a handshake within a second", shake_hands)
        before = info(admin, "tls_handshake_failures")
        silent = self.plain(server.tls_port)
        halfway = self.secure(server, handshake=False)
        with contextlib.suppress(ssl.SSLWantReadError):
            halfway.ssl.do_handshake()
        with contextlib.suppress(OSError):  # the connection is closed already
            halfway.socket.sendall(halfway.outgoing.read()[:100])
        self.assertEqual(silent.read_to_end(), b"")
        self.assertTrue(resp.Connection.is_closed(halfway))
        self.assert_works(done)
        self.assertEqual(info(admin, "tls_handshake_failures"), before + 2)
        server.wait_log("client at .*: TLS failed: the handshake took longer than tls-handshake-timeout")

    def test_the_server_says_goodbye(self):
        server = self.run_server("--workers", "2")
        connections = [self.secure(server) for _ in range(4)]
        for connection in connections:
            self.assert_works(connection)
        server.signal(signal.SIGTERM)
        for connection in connections:
            self.assertEqual(connection.read_to_end(), b"")
            self.assertTrue(connection.clean)
        self.assertEqual(server.wait(), 0)


class Renewal(TlsCase):
    """New connections get new certificates while the server runs."""

    def setUp(self):
        for kind in ("pem", "key"):
            self.certificates.copy("server." + kind, "own." + kind)

    def own(self):
        """Flags that name the files called own."""
        return ["--tls-cert-file", self.certificates.path("own.pem"), "--tls-key-file",
                self.certificates.path("own.key")]

    def renew(self):
        for kind in ("pem", "key"):
            self.certificates.copy("renewed." + kind, "own." + kind)

    def spoil(self):
        with open(self.certificates.path("own.pem"), "w", encoding="ascii") as file:
            file.write("nonsense\n")

    def assert_shows(self, server, name):
        connection = self.secure(server)
        self.assert_works(connection)
        self.assertEqual(connection.server_name(), name)

    def test_config_set(self):
        server, path = self.run_server("--workers", "2"), self.certificates.path
        old, admin = self.secure(server), self.plain(server.port)
        self.assertEqual(old.server_name(), "server")
        reply = admin.call("CONFIG", "SET", "tls-cert-file", path("renewed.pem"), "tls-key-file",
                           path("renewed.key"))
        self.assertEqual(reply.raw, b"+OK\r\n")
        for _ in range(4):  # on every worker, as soon as CONFIG SET is answered
            self.assert_shows(server, "renewed")
        self.assert_works(old)
        for name, why in (("none.pem", "No such file or directory"), ("ca.key", "no start line"),
                          ("client.pem", "does not belong to the certificate")):
            reply = admin.call("CONFIG", "SET", "tls-cert-file", path(name))
            self.assertRegex(reply.raw.decode(),
                             r"^-ERR CONFIG SET failed \(possibly related to argument "
                             rf"'tls-cert-file'\) - TLS: .*{why}")
            self.assertEqual(admin.call("CONFIG", "GET", "tls-cert-file").items[1].text.decode(),
                             path("renewed.pem"))
        self.assert_shows(server, "renewed")
        self.assertEqual(admin.call("CONFIG", "SET", "tls-auth-clients", "no").raw, b"+OK\r\n")
        self.assertFalse(self.refused(server, None))
        self.assertEqual(admin.call("CONFIG", "SET", "tls-auth-clients", "yes").raw, b"+OK\r\n")
        self.assertTrue(self.refused(server, None))
        self.assertIn(b"immutable", admin.call("CONFIG", "SET", "tls-port", "0").raw)
        self.assertIn(b"tls-auth-clients yes needs",
                      admin.call("CONFIG", "SET", "tls-ca-cert-file", "").raw)

    def test_setting_it_again_reloads_it(self):
        server = self.run_server(*self.own())
        self.renew()
        reply = self.plain(server.port).call("CONFIG", "SET", "tls-cert-file",
                                             self.certificates.path("own.pem"))
        self.assertEqual(reply.raw, b"+OK\r\n")
        self.assert_shows(server, "renewed")

    def hang_up(self, server, says):
        seen = len(server.log)
        server.signal(signal.SIGHUP)
        wait_for(self, "it says: " + says,
                 lambda: any(re.search(says, line) for line in server.log[seen:]))

    def test_sighup_without_a_configuration_file(self):
        server = self.run_server(*self.own())
        old = self.secure(server)
        self.renew()
        self.assert_shows(server, "server")
        self.hang_up(server, "TLS: certificates reloaded; new connections use them")
        wait_for(self, "workers have it", lambda: self.secure(server).server_name() == "renewed")
        self.spoil()
        self.hang_up(server, r"SIGHUP: nothing changed: TLS: certificate file \S+own.pem: no start")
        self.assert_shows(server, "renewed")
        self.assert_works(old)

    def test_sighup_with_one(self):
        path = self.certificates.path("heatsink.conf")

        def write(level, name):
            with open(path, "w", encoding="ascii") as file:
                file.write("slowlog-max-len %d\ntls-cert-file %s\ntls-key-file %s\n"
                           "tls-ca-cert-file %s\n" % (level, *(self.certificates.path(part) for part in (
                               name + ".pem", name + ".key", "ca.pem"))))
        write(50, "server")
        ports = [servers.ReservedPort(), servers.ReservedPort()]
        for port in ports:
            self.addCleanup(port.release)
        server = servers.Heatsink("--config", path, "--port", ports[0].number, "--tls-port",
                                  ports[1].number)
        self.addCleanup(server.close)
        self.assert_shows(server, "server")
        write(60, "renewed")
        self.hang_up(server, "SIGHUP: reloaded")
        wait_for(self, "workers have it", lambda: self.secure(server).server_name() == "renewed")
        write(70, "missing")
        self.hang_up(server, r"SIGHUP: nothing changed: TLS: certificate file \S+missing.pem: No such")
        self.assert_shows(server, "renewed")
        admin = self.plain(server.port)
        self.assertEqual(admin.call("CONFIG", "GET", "slowlog-max-len").items[1].text, b"60")

    def test_while_clients_come(self):
        """Certificates change under a stream of new connections; each gets the old or the new one."""
        server, path = self.run_server("--workers", "2"), self.certificates.path
        admin, names = self.plain(server.port), set()
        for at in range(60):
            name = ("server", "renewed")[at % 2]
            admin.send(resp.encode("CONFIG", "SET", "tls-cert-file", path(name + ".pem"),
                                   "tls-key-file", path(name + ".key")))
            names.add(self.secure(server).server_name())
            self.assertEqual(admin.read().raw, b"+OK\r\n")
            self.assert_shows(server, name)
        self.assertLessEqual(names, {"server", "renewed"})


class Starting(FolderCase):
    """A start that cannot work prints one line and changes nothing."""

    def setUp(self):
        super().setUp()
        self.certificates = tls.Certificates()
        self.addCleanup(self.certificates.close)

    def refuse(self, *args, words):
        for extra in ([], ["--check-config"]):
            self.refuse_once(*args, *extra, words=words)

    def refuse_once(self, *args, words):
        port = servers.ReservedPort()
        self.addCleanup(port.release)
        done = subprocess.run(
            [servers.heatsink_path(), "serve", "--port", "0", "--http", "-1", "--tls-port",
             str(port.number), "--data", self.path("new"), *args], capture_output=True, text=True,
            timeout=GUARD_S, check=False)
        said = done.stdout + done.stderr
        self.assertEqual(done.returncode, 1, said)
        self.assertEqual(len(said.splitlines()), 1, said)
        for word in words:
            self.assertIn(word, said)
        self.assertFalse(os.path.exists(self.path("new")))

    def test_files(self):
        path, good = self.certificates.path, self.certificates.options()
        self.refuse(words=["tls-port needs tls-cert-file and tls-key-file"])
        self.refuse(*good, "--tls-ca-cert-file", "",
                    words=["tls-auth-clients yes needs tls-ca-cert-file or tls-ca-cert-dir"])
        for flag, name, why in (
                ("--tls-cert-file", "none.pem", "No such file or directory"),
                ("--tls-cert-file", "client.key", "no start line"),
                ("--tls-key-file", "none.key", "No such file or directory"),
                ("--tls-key-file", "client.key", "does not belong to the certificate"),
                ("--tls-key-file", "locked.key", "needs a password"),
                ("--tls-ca-cert-file", "none.pem", "No such file or directory"),
                ("--tls-ca-cert-dir", "none", "No such file or directory")):
            with self.subTest(flag=flag, name=name):
                self.refuse(*good, flag, path(name), words=[path(name), why])
        locked = [*good, "--tls-key-file", path("locked.key"), "--tls-key-file-pass"]
        self.refuse(*locked, "sesame", words=[path("locked.key"), "the password is wrong"])
        self.refuse(*good, "--tls-protocols", "SSLv2", words=["SSLv2"])
        self.refuse(*good, "--tls-ciphers", "ROT13", words=["ROT13"])
        with tls.server(self.certificates, *locked[-3:], "open sesame", "--tls-ca-cert-file", "",
                        "--tls-ca-cert-dir", path("cas")) as server:
            with tls.Connection(server.tls_port, self.certificates.context()) as connection:
                self.assertEqual(connection.call("PING").raw, b"+PONG\r\n")

    def test_the_port_is_taken(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = str(taken.getsockname()[1])
            self.refuse_once(*self.certificates.options(), "--tls-port", port,
                             words=[port, "in use", "--tls-port"])

    def test_beyond_loopback(self):
        self.refuse(*self.certificates.options(), "--bind", "0.0.0.0",
                    words=["protected-mode", "requirepass"])

    def test_without_tls_ciphers_are_checked(self):
        """An invalid cipher list is refused even if there is no TLS port."""
        with servers.Heatsink() as server:
            client = server.raw()
            for name, value, why in (("tls-ciphers", "garbage", b"ciphers garbage: "),
                                     ("tls-ciphersuites", "garbage", b"ciphersuites garbage: "),
                                     ("tls-protocols", "TLSv9", b"'TLSv9' is not a protocol")):
                reply = client.call("CONFIG", "SET", name, value)
                self.assertTrue(reply.is_error, name)
                self.assertIn(b"related to argument '%s'" % name.encode(), reply.raw)
                self.assertIn(why, reply.raw)
                self.assertEqual(client.call("CONFIG", "GET", name).items[1].text, b"")
                self.refuse("--tls-port", "0", f"--{name}", value, words=[value, "TLS: "])
            for name, value in (("tls-ciphers", "ECDHE+AESGCM"), ("tls-protocols", "TLSv1.2"),
                                ("tls-ciphersuites", "TLS_AES_128_GCM_SHA256")):
                self.assertEqual(client.call("CONFIG", "SET", name, value).raw, b"+OK\r\n")

    def test_without_tls_files_are_not_looked_at(self):
        """As in Redis: without a TLS port, the file options are stored and not read."""
        with servers.Heatsink("--tls-cert-file", "/nowhere/none.pem") as server:
            self.assertIsNone(server.tls_port)
            self.assertTrue(server.client().config_set("tls-key-file", "/nowhere/none.key"))
            server.client().ping()


if __name__ == "__main__":
    unittest.main()
