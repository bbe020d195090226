"""Goal: HTTP serves the values of public keys, with headers that keep the contract, and nothing of other keys: no byte,
and not even whether a key exists.

Method: real servers, embedded and in front of a redis-server, read with http.client. A relay in between holds replies
back to play a slow server; INFO shows how many requests wait.
"""

import hashlib
import http.client
import os
import socket
import sys
import threading
import unittest
import urllib.parse

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

import resp
import servers
from cases import ServerCase
from checks import client_rows, is_sanitized, wait_for
from relay import Relay
from servers import GUARD_S

FETCHES_MAX = 64
BODY_MAX = 16 << 20
PATIENT = ("--http-timeout", "120")  # a busy machine needs long for 16 MB
RULES = ("--rule", "pub:* cache stale=5s admit=all public",
         "--rule", "pub:stale-while-revalidate:* cache stale=1500ms stale-while-revalidate=2s stale-if-error=1h public",
         "--rule", "pub:fast:* cache stale=100ms public",
         "--rule", "pub:private:* cache stale=5s admit=all",
         "--rule", "pub:strict:* strict")

ODD = (b"pub:a/b//c", b"pub:\x00\x01\xff", b"pub:?q=1&r#x", b"pub:%41", b"pub: +", b"pub:\r\nX: y",
       "pub:ümlaut €".encode(), b"pub:../../metrics", b"pub:" + b"k" * 5000)


def path_of(key):
    return "/kv/" + urllib.parse.quote_from_bytes(key, safe="")


def etag_of(value):
    return f'"{hashlib.sha256(value).hexdigest()[:32]}"'


def ask(port, path, method="GET", headers=None):
    """Status, headers and body of one request on a new connection."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=GUARD_S)
    try:
        connection.request(method, path, headers=headers or {})
        answer = connection.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read()
    finally:
        connection.close()


def read_info(connection):
    text = connection.call("INFO", "http").text.decode()
    return {name: int(value) for name, value in
            (line.split(":", 1) for line in text.split("\r\n") if ":" in line)}


def info(server):
    with resp.Connection(server.port) as connection:
        return read_info(connection)


class Asker:
    """Sends a request in a thread; result() waits for the answer."""

    def __init__(self, port, path):
        self.answer = None
        self.thread = threading.Thread(target=self._run, args=(port, path), daemon=True)
        self.thread.start()

    def _run(self, port, path):
        try:
            self.answer = ask(port, path)
        except (OSError, http.client.HTTPException) as error:
            self.answer = error

    def result(self):
        self.thread.join(GUARD_S)
        return self.answer


class Cases:
    """Tests for every engine."""

    def kv(self, key, method="GET", headers=None):
        return ask(self.server.http_port, path_of(key), method, headers)

    def info(self):
        return read_info(self.connect())

    def put(self, key, value):
        self.assert_reply(self.connect(), b"+OK\r\n", "SET", key, value)

    def assert_not_there(self, answer):
        status, headers, body = answer
        headers.pop("Date")
        self.assertEqual((status, body), (404, b"no such key, or it is not public\n"))
        self.assertEqual(headers, {"Content-Type": "text/plain; charset=utf-8",
                                   "Cache-Control": "no-store",
                                   "X-Content-Type-Options": "nosniff",
                                   "Content-Length": str(len(body))})

    def test_a_value_and_every_header(self):
        value = b"<script>\x00\xff"
        self.put("pub:a", value)
        for method, expected in (("GET", value), ("HEAD", b"")):
            status, headers, body = self.kv(b"pub:a", method)
            headers.pop("Date")
            self.assertEqual((status, body), (200, expected))
            self.assertEqual(headers, {
                "Content-Type": "application/octet-stream",
                "Cache-Control": "public, max-age=5, must-revalidate",
                "ETag": etag_of(value), "Accept-Ranges": "none",
                "X-Content-Type-Options": "nosniff", "Content-Length": str(len(value))})

    def test_an_empty_value(self):
        self.put("pub:empty", "")
        status, headers, body = self.kv(b"pub:empty")
        self.assertEqual((status, body, headers["ETag"]), (200, b"", etag_of(b"")))

    def test_cache_control_is_the_rules(self):
        for key, expected in (
                (b"pub:stale-while-revalidate:1", "public, max-age=1, stale-while-revalidate=2, stale-if-error=3600"),
                (b"pub:fast:1", "public, max-age=0, must-revalidate")):
            self.put(key, "x")
            self.assertEqual(self.kv(key)[1]["Cache-Control"], expected)

    def test_without_mitigation_http_caches_nothing(self):
        client = self.connect()
        self.put("pub:m", "x")
        self.addCleanup(client.call, "HEAT", "MITIGATE", "ON")
        for mode, expected in (("OFF", "public, no-cache"), ("OBSERVE", "public, no-cache"),
                               ("ON", "public, max-age=5, must-revalidate")):
            client.call("HEAT", "MITIGATE", mode)
            self.assertEqual(self.kv(b"pub:m")[1]["Cache-Control"], expected, mode)

    def test_not_modified(self):
        self.put("pub:n", "value")
        etag = etag_of(b"value")
        before = self.info()["http_kv_not_modified"]
        matching = (etag, "W/" + etag, "*", f'"a", {etag}', f'W/"b",{etag} , "c"')
        for given in matching:
            for method in ("GET", "HEAD"):
                status, headers, body = self.kv(b"pub:n", method, {"If-None-Match": given})
                self.assertEqual((status, body), (304, b""), given)
                self.assertEqual(headers["ETag"], etag)
                self.assertEqual(headers["Cache-Control"], "public, max-age=5, must-revalidate")
        self.assertEqual(self.info()["http_kv_not_modified"], before + 2 * len(matching))
        for given in ('"other"', etag[1:-1], "", '"a", *', etag.upper()):
            status, _, body = self.kv(b"pub:n", headers={"If-None-Match": given})
            self.assertEqual((status, body), (200, b"value"), given)

    def test_an_etag_follows_a_write_at_once(self):
        client = self.connect()
        for i in range(50):
            value = str(i).encode()
            self.assertEqual(client.call("SET", "pub:w", value).raw, b"+OK\r\n")
            status, headers, body = self.kv(b"pub:w", headers={
                "If-None-Match": etag_of(str(i - 1).encode())})
            self.assertEqual((status, body, headers["ETag"]), (200, value, etag_of(value)))
        client.call("DEL", "pub:w")
        self.assert_not_there(self.kv(b"pub:w"))

    def test_a_range_is_not_a_range(self):
        self.put("pub:r", "0123456789")
        status, _, body = self.kv(b"pub:r", headers={"Range": "bytes=2-3"})
        self.assertEqual((status, body), (200, b"0123456789"))

    def test_nothing_else_is_there(self):
        """Missing, private and excepted keys look the same, also to a client that guesses an ETag."""
        for key in ("secret", "pub:private:1", "pub:strict:1", "xpub:1", "pub"):
            self.put(key, "secret")
        for key in (b"pub:missing", b"secret", b"nosuch", b"pub:private:1", b"pub:private:2",
                    b"pub:strict:1", b"pub:strict:2", b"xpub:1", b"pub", b"PUB:a", b""):
            for headers in (None, {"If-None-Match": "*"},
                            {"If-None-Match": etag_of(b"secret")}):
                with self.subTest(key=key, headers=headers):
                    self.assert_not_there(self.kv(key, headers=headers))
            self.assertEqual(self.kv(key, "HEAD")[0], 404)

    def test_a_key_that_is_not_public_is_not_even_read(self):
        client = self.connect()
        self.put("secret", "x")
        client.call("CONFIG", "RESETSTAT")
        self.assert_not_there(self.kv(b"secret"))
        self.assert_not_there(self.kv(b"pub:private:1"))
        self.assertNotIn(b"cmdstat_get:", client.call("INFO", "commandstats").text)

    def test_rules_while_running(self):
        client = self.connect()
        self.put("run:1", "value")
        self.assert_not_there(self.kv(b"run:1"))
        for _ in range(3):
            self.assert_reply(client, b"+OK\r\n", "HEAT", "RULE", "SET", "run:*", "cache", "public")
            self.assertEqual(self.kv(b"run:1")[::2], (200, b"value"))
            self.assertFalse(client.call("HEAT", "RULE", "DEL", "run:*").is_error)
            self.assert_not_there(self.kv(b"run:1"))

    def test_odd_keys(self):
        for i, key in enumerate(ODD):
            self.put(key, f"value {i}")
        for i, key in enumerate(ODD):
            self.assertEqual(self.kv(key)[::2], (200, f"value {i}".encode()), key)
        # A slash and most other characters need no encoding.
        self.assertEqual(ask(self.server.http_port, "/kv/pub:a/b//c")[2], b"value 0")
        self.assertEqual(ask(self.server.http_port, "/kv/pub:../../metrics")[0], 200)

    def test_paths_that_are_none(self):
        for path, expected in (("/kv/pub:%", 400), ("/kv/pub:%4", 400), ("/kv/%zz", 400),
                               ("/kv/pub:a?x=1", 400), ("/kv", 404), ("/KV/pub:a", 404),
                               ("/%6bv/pub:a", 404), ("//kv/pub:a", 404)):
            status, headers, body = ask(self.server.http_port, path)
            self.assertEqual(status, expected, path)
            self.assertEqual(headers["Cache-Control"], "no-store")
            self.assertTrue(body)
        for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS"):
            status, headers, _ = ask(self.server.http_port, "/kv/pub:a", method)
            self.assertEqual((status, headers["Allow"]), (405, "GET, HEAD"), method)

    def test_other_types(self):
        self.connect().call("EVAL", "return redis.call('LPUSH', KEYS[1], 'x')", "1", "pub:list")
        status, headers, body = self.kv(b"pub:list")
        if self.lists:
            self.assertEqual((status, headers["Cache-Control"]), (409, "no-store"))
            self.assertIn(b"not a string", body)

    def test_large_values(self):
        client = self.connect()
        sizes = ((BODY_MAX, 200), (BODY_MAX + 1, 500), (BODY_MAX * 2, 500), (70000, 200))
        for size, expected in sizes[1::2] if is_sanitized() else sizes:
            self.assert_reply(client, b"+OK\r\n", "SET", "pub:large", b"v" * size)
            status, headers, body = self.kv(b"pub:large")
            self.assertEqual(status, expected, size)
            if status == 200:
                self.assertTrue(body == b"v" * size)
            else:
                self.assertEqual(body, b"the value is too large: at most 16777216 bytes are sent\n")
                self.assertEqual(headers["Cache-Control"], "no-store")

    def test_many_at_once(self):
        for i in range(20):
            self.put(f"pub:many:{i}", f"value {i}")
        failures = []

        def work(number):
            connection = http.client.HTTPConnection("127.0.0.1", self.server.http_port,
                                                    timeout=GUARD_S)
            for i in range(30):
                key = (number + i) % 20
                connection.request("GET", f"/kv/pub:many:{key}")
                answer = connection.getresponse()
                body = answer.read()
                if (answer.status, body) != (200, f"value {key}".encode()):
                    failures.append((answer.status, body))
            connection.close()

        threads = [threading.Thread(target=work, args=(i,)) for i in range(40)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])
        self.assertEqual(self.info()["http_kv_waiting"], 0)

    def test_a_read_is_a_hit(self):
        self.put("pub:hit", "value")
        for _ in range(5):
            self.kv(b"pub:hit")

        def hits():
            listed = self.connect().call("HEAT", "RULE", "LIST")
            rule = {rule.items[i].text: rule.items[i + 1] for rule in listed.items[:1]
                    for i in range(0, len(rule.items), 2)}
            return int(rule[b"hits"].text)

        before = hits()
        for _ in range(10):
            self.assertEqual(self.kv(b"pub:hit")[0], 200)
        self.assertGreaterEqual(hits(), before + 10)

    def test_the_channel_is_a_client_that_can_be_killed(self):
        client = self.connect()
        self.put("pub:k", "value")
        for _ in range(5):
            self.assertEqual(self.kv(b"pub:k")[0], 200)
            rows = [row for row in client_rows(client) if row["addr"] == "http"]
            self.assertTrue(rows)
            for row in rows:
                client.call("CLIENT", "KILL", "ID", row["id"])

    def test_counted(self):
        before = self.info()
        self.put("pub:c", "x")
        self.kv(b"pub:c")
        self.kv(b"nosuch")
        after = self.info()
        self.assertEqual(after["http_kv_requests"], before["http_kv_requests"] + 2)
        page = ask(self.server.http_port, "/metrics")[2].decode()
        self.assertIn(f"\nheatsink_http_kv_requests_total {after['http_kv_requests']}\n", page)


class Embedded(Cases, ServerCase):
    args = ("--workers", "2", "--sync", "off", *PATIENT, *RULES)
    lists = False

    def test_large_values_that_no_client_reads(self):
        """Four unread values of 15 MiB fill the limit of unsent bytes; a fifth is refused before it is read."""
        self.put("pub:unread", b"v" * (15 << 20))
        self.put("pub:small", "small")
        refused = self.info()["http_kv_refused"]
        idle = []
        for _ in range(4):
            taker = socket.create_connection(("127.0.0.1", self.server.http_port), timeout=GUARD_S)
            self.addCleanup(taker.close)
            taker.sendall(b"GET /kv/pub:unread HTTP/1.1\r\nHost: localhost\r\n\r\n")
            self.assertEqual(taker.recv(12), b"HTTP/1.1 200")
            idle.append(taker)
        status, headers, body = self.kv(b"pub:unread")
        self.assertEqual((status, headers["Retry-After"]), (503, "1"), body)
        self.assertEqual(self.info()["http_kv_refused"], refused + 1)
        self.assertEqual(self.kv(b"pub:small")[::2], (200, b"small"))
        idle[0].close()
        wait_for(self, "room again", lambda: self.kv(b"pub:unread")[0] == 200)


class WithPassword(Cases, ServerCase):
    """The default user is off, so Redis clients need a password; HTTP needs none."""
    args = ("--workers", "2", "--sync", "off", "--user", "default off nopass ~none -@all",
            "--user", "me on >pw ~* &* +@all", *PATIENT, *RULES)
    lists = False

    def connect(self):
        connection = super().connect()
        self.assertEqual(connection.call("AUTH", "me", "pw").raw, b"+OK\r\n")
        return connection


class InFront(Cases, ServerCase):
    lists = True

    @classmethod
    def setUpClass(cls):
        cls.redis = servers.Redis()
        cls.addClassCleanup(cls.redis.close)
        cls.args = ("--workers", "2", "--engine", f"redis://127.0.0.1:{cls.redis.port}", *PATIENT,
                    *RULES)
        super().setUpClass()

    def test_direct_write(self):
        """Tracking invalidates the entry; `stale` alone would take five seconds."""
        direct = self.redis.client()
        self.put("pub:b", "old")
        self.assertEqual(self.kv(b"pub:b")[2], b"old")
        direct.set("pub:b", "new")
        wait_for(self, "the new value", lambda: self.kv(b"pub:b")[2] == b"new")


class Slow(unittest.TestCase):
    """A server behind a relay that holds replies back."""

    def setUp(self):
        self.redis = servers.Redis()
        self.addCleanup(self.redis.close)
        self.redis.client().set("pub:a", "value")
        self.redis.client().set("pub:quick", "quick")
        self.relay = Relay(self.redis.port)
        self.addCleanup(self.relay.close)

    def start(self, *args):
        server = servers.Heatsink("--workers", "2", "--engine",
                                  f"redis://127.0.0.1:{self.relay.port}", "--engine-timeout",
                                  "60000", *RULES, *args)
        self.addCleanup(server.close)
        return server

    def hold(self, key):
        fault = self.relay.hold(lambda args: args[0].upper() == b"GET" and args[1] == key, times=1000)
        self.addCleanup(fault.release)
        return fault

    def test_too_late_is_504(self):
        server = self.start("--http-timeout", "5")
        self.hold(b"pub:a")
        status, headers, body = ask(server.http_port, "/kv/pub:a")
        self.assertEqual((status, headers["Cache-Control"]), (504, "no-store"))
        self.assertIn(b"in time", body)
        self.assertEqual(info(server)["http_kv_timeouts"], 1)
        self.assertEqual(ask(server.http_port, "/healthz")[0], 200)

    def test_other_pages_work_and_too_many_fetches_are_refused(self):
        server = self.start(*PATIENT)
        fault = self.hold(b"pub:a")
        waiting = [Asker(server.http_port, "/kv/pub:a") for _ in range(FETCHES_MAX)]
        wait_for(self, "all wait", lambda: info(server)["http_kv_waiting"] == FETCHES_MAX)
        status, headers, _ = ask(server.http_port, "/kv/pub:a")
        self.assertEqual((status, headers["Retry-After"], headers["Cache-Control"]),
                         (503, "1", "no-store"))
        self.assertEqual(info(server)["http_kv_refused"], 1)
        self.assertEqual(ask(server.http_port, "/healthz")[0], 200)
        self.assertEqual(ask(server.http_port, "/kv/secret")[0], 404)
        fault.release()
        for asker in waiting:
            self.assertEqual(asker.result()[::2], (200, b"value"))
        # A few internal connections stay open.
        with resp.Connection(server.port) as client:
            wait_for(self, "most have gone", lambda: sum(
                row["addr"] == "http" for row in client_rows(client)) <= 8)

    def test_a_rule_that_goes_while_the_value_is_read(self):
        server = self.start(*PATIENT)
        fault = self.hold(b"pub:a")
        asker = Asker(server.http_port, "/kv/pub:a")
        fault.wait()
        with resp.Connection(server.port) as client:
            self.assertFalse(client.call("HEAT", "RULE", "DEL", "pub:*").is_error)
        fault.release()
        self.assertEqual(asker.result()[0], 404)

    def test_shutdown_while_one_waits(self):
        server = self.start(*PATIENT, "--shutdown-timeout", "1",
                            "--engine-timeout", "5000")  # the shutdown waits this long for requests at the server
        fault = self.hold(b"pub:a")
        asker = Asker(server.http_port, "/kv/pub:a")
        fault.wait()
        server.signal(15)
        self.assertEqual(server.wait(), 0)
        answer = asker.result()
        self.assertEqual(answer[0], 503)
        self.assertEqual(answer[1]["Retry-After"], "1")

    def test_shutdown_with_a_channel_at_rest(self):
        server = self.start("--shutdown-timeout", "60")
        self.assertEqual(ask(server.http_port, "/kv/pub:a")[0], 200)
        server.signal(15)
        self.assertEqual(server.wait(), 0)

    def test_no_server(self):
        server = self.start("--engine-timeout", "300")
        self.relay.refuse()
        self.relay.cut_all()
        status, headers, body = ask(server.http_port, "/kv/pub:a")
        self.assertEqual((status, headers["Cache-Control"]), (503, "no-store"))
        self.assertNotIn(b"127.0.0.1", body)


if __name__ == "__main__":
    unittest.main()
