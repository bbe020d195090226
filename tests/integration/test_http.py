"""Goal: the HTTP port serves what a scraper, a script or a person expects, and no HTTP client can hurt the server or
its Redis clients.

Method: real servers. Pages are requested with http.client; promtool parses the metrics, Python the JSON; both are
compared with INFO and HEAT. Bad clients are plain sockets that break the protocol; the server's own counters show
what became of them.
"""

import errno
import http.client
import json
import os
import re
import socket
import subprocess
import sys
import threading
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

import counters
import resp
import servers
from cases import FolderCase, ServerCase
from checks import wait_for
from servers import GUARD_S, ROOT

SANITIZERS = ("address",)  # one thread serves HTTP

ROUTES = ("/", "/metrics", "/api/heat", "/api/partitions", "/api/history", "/healthz", "/readyz")
WITH_REST = ("/kv/<key>",)  # test_kv tests the replies
CONNECTIONS_MAX = 256
# Seconds after which bad clients are dropped; good clients must be served within that time.
IMPATIENT = ("--http-timeout", "4")

# Keys that need escaping in JSON, metrics or top.
WEIRD = (b"plain", b"new\nline", b'quo"te', b"back\\slash", b"\xff\xfe\x00\x01", "ümlaut €".encode(),
         b"\xed\xa0\x80", b"cr\rtab\t", b"\x1b[31m", b"{}=,#")


def escape(key):
    """A key as JSON, metrics and top show it."""
    short = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}
    text = key.decode("utf-8", "surrogateescape")
    return "".join(short.get(char) or (
        "\\x%02x" % (ord(char) & 0xff) if ord(char) < 32 or 0xdc80 <= ord(char) <= 0xdcff else char)
        for char in text)


def label(text):
    """A label value in the Prometheus text format."""
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def ask(port, path, method="GET", headers=None):
    """Status, headers and body of one request on a new connection."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=GUARD_S)
    try:
        connection.request(method, path, headers=headers or {})
        answer = connection.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read()
    finally:
        connection.close()


def samples(page):
    """The value of every sample by its name with labels."""
    return {name: float(value) for name, value in
            re.findall(r"^([a-zA-Z_:][\w:]*(?:\{.*\})?) (\S+)$", page, re.M)}


def promtool(page):
    """promtool's complaints about a page; empty if it is valid."""
    done = subprocess.run(["promtool", "check", "metrics"], input=page, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=GUARD_S, check=False)
    return done.stdout.decode() or ("" if done.returncode == 0 else f"exit {done.returncode}")


def pairs(reply):
    """A map of RESP3 as a dict."""
    return {name.text.decode(): value for name, value in zip(reply.items[::2], reply.items[1::2])}


class HttpCase(ServerCase):
    args = ("--workers", "2", "--sync", "off")

    def ask(self, path, method="GET", headers=None):
        return ask(self.server.http_port, path, method, headers)

    def page(self, path):
        status, _, body = self.ask(path)
        self.assertEqual(status, 200, body)
        return body.decode()

    def json(self, path):
        return json.loads(self.page(path))

    def metrics(self):
        return samples(self.page("/metrics"))

    def info(self):
        text = self.connect().call("INFO", "everything").text.decode()
        return dict(line.split(":", 1) for line in text.split("\r\n") if ":" in line)

    def heat_up(self, key, times=500):
        """Makes a key hot with a pipeline of reads."""
        connection = self.connect()
        connection.send(resp.encode("GET", key) * times)
        for _ in range(times):
            connection.read()


class Pages(HttpCase):
    def test_every_route(self):
        for path in ROUTES:
            with self.subTest(path):
                status, headers, body = self.ask(path)
                self.assertEqual(status, 200, body)
                self.assertEqual(headers["Cache-Control"], "no-store")
                self.assertEqual(headers["X-Content-Type-Options"], "nosniff")
                self.assertEqual(int(headers["Content-Length"]), len(body))
                kind = {"/api": "application/json",
                        "/met": "text/plain; version=0.0.4; charset=utf-8"}.get(path[:4])
                self.assertEqual(headers["Content-Type"], kind or "text/plain; charset=utf-8")

    def test_the_index_lists_every_route(self):
        listed = re.findall(r"^(/\S*) ", self.page("/"), re.M)
        self.assertEqual(sorted(listed), sorted(ROUTES + WITH_REST))

    def test_health(self):
        self.assertEqual(self.page("/healthz"), "ok\n")
        self.assertEqual(self.page("/readyz"), "ready\n")

    def test_head(self):
        for path in ROUTES:
            status, headers, body = self.ask(path, "HEAD")
            self.assertEqual((status, body), (200, b""), path)
            self.assertGreater(int(headers["Content-Length"]), 0, path)

    def test_missing_pages(self):
        for path in ("/nosuch", "/metrics/", "//", "/api", "/../etc/passwd",
                     "/api/heat%00", "/api/heat%00?count=1", "/api/heat%0a"):
            status, _, body = self.ask(path)
            self.assertEqual(status, 404, path)
            for route in ROUTES:
                self.assertIn(f"\n{route} ", body.decode())

    def test_methods(self):
        for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS"):
            status, headers, _ = self.ask("/metrics", method)
            self.assertEqual((status, headers["Allow"]), (405, "GET, HEAD"), method)

    def test_queries_are_checked(self):
        for query, words in (
                ("/metrics?a=1", "unknown parameter 'a': /metrics takes none"),
                ("/api/heat?cuont=1", "unknown parameter 'cuont': /api/heat takes what, count"),
                ("/api/heat?count=0", "count=0: must be a number from 1 to 1000"),
                ("/api/heat?count=1001", "count=1001: must be"),
                ("/api/heat?count=1&count=2", "'count' is given twice"),
                ("/api/heat?count=", "count=: must be"),
                ("/api/heat?what=tenants", "what=tenants: must be one of keys|prefixes|slots"),
                ("/api/heat?by=heat", "by=heat: must be one of ops|reads"),
                ("/api/heat?window=%00", r"window=\x00: must be one of short|long"),
                ("/api/heat?what=slots&prefix=a", "prefix= works with"),
                ("/api/partitions?window=medium", "window=medium: must be one of short|long"),
                ("/api/history?seconds=601", "seconds=601: must be a number from 1 to 600"),
                ("/api/history?what=keys", "what=keys: must be one of partitions|top|ranges")):
            with self.subTest(query):
                status, headers, body = self.ask(query)
                self.assertEqual(status, 400)
                self.assertIn(words, body.decode())
                self.assertTrue(headers["Content-Type"].startswith("text/plain"))

    def test_only_by_this_machine_s_names(self):
        """A foreign web page in a local browser sends its own host name, which is refused (DNS rebinding)."""
        for name in ("localhost", "127.0.0.1:8380", "[::1]:8380"):
            self.assertEqual(self.ask("/healthz", headers={"Host": name})[0], 200, name)
        for name in ("attacker.example", "127.0.0.1.attacker.example:8380"):
            self.assertEqual(self.ask("/healthz", headers={"Host": name})[0], 421, name)

    def test_many_requests_on_a_connection(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.server.http_port, timeout=GUARD_S)
        self.addCleanup(connection.close)
        connection.connect()
        first = connection.sock
        for path in ROUTES * 3 + ("/nosuch",) + ROUTES:
            connection.request("GET", path)
            answer = connection.getresponse()
            self.assertEqual(answer.status, 404 if path == "/nosuch" else 200)
            answer.read()
        self.assertIs(connection.sock, first)


class Metrics(HttpCase):
    def test_promtool_is_silent(self):
        connection = self.connect()
        connection.call("SET", "a", "1")
        connection.call("GET")
        connection.call("NOSUCH")
        page = self.page("/metrics")
        self.assertEqual(promtool(page.encode()), "")
        self.assertIn("no help", promtool(b"# TYPE a_total counter\na_total 1\n"),
                      "it would say what it finds")

    def test_families(self):
        """Each family has one HELP and one TYPE line before all its samples."""
        family, seen = None, set()
        for line in self.page("/metrics").splitlines():
            comment = re.match(r"# (HELP|TYPE) (\w+) (.+)$", line)
            if comment and comment.group(1) == "HELP":
                family, kind = comment.group(2), None
                self.assertNotIn(family, seen)
                self.assertTrue(family.startswith("heatsink_"), family)
                seen.add(family)
            elif comment:
                self.assertEqual(comment.group(2), family)
                kind = comment.group(3)
                self.assertEqual(kind == "counter", family.endswith("_total"), family)
            else:
                name = re.match(r"\w+", line).group()
                if kind == "histogram":
                    name = re.sub("_(bucket|sum|count)$", "", name)
                self.assertEqual(name, family)
        self.assertGreater(len(seen), 50)

    def test_build(self):
        info = self.info()
        self.assertEqual(self.metrics()['heatsink_build_info{version="%s",redis_version="%s",'
                                        'engine="%s"}' % (info["heatsink_version"],
                                                          info["redis_version"],
                                                          info["engine"])], 1)

    def test_info_and_metrics_agree(self):
        """Every row that is an INFO field and a metric agrees: the metric lies between INFO before and after."""
        rows = [(row.name, row.metric, "", counters.factor(row)) for row in counters.fields() if row.metric]
        self.assertGreater(len(rows), 30)
        with open(os.path.join(ROOT, "src/serve/info_rows.c"), encoding="utf-8") as file:
            worked_out = re.findall(r'(?:NUMBER|PRINTED)\("\w+", (\w+),(?:(?!NUMBER|PRINTED)[^"]|"%[^"]*")*'
                                    r'(?:GAUGE|TOTAL)\("(\w+)", "[^"]*"\)(?:, \.mode = "(\w+)")?', file.read())
        self.assertGreater(len(worked_out), 10)
        rows += [row + (1,) for row in worked_out]
        connection = self.connect()
        wait_for(self, "clients of other tests are gone", lambda: b"connected_clients:1\r\n" in
                 connection.call("INFO", "clients").text)
        for at in range(50):
            connection.call("SET", f"agree:{at}", at)
            connection.call("GET", f"agree:{at}")
            connection.call("GET", "agree:missing")
        before, metrics, after = self.info(), self.metrics(), self.info()
        for name, metric, mode, factor in rows:
            with self.subTest(name):
                value = metrics["heatsink_" + metric + ('{mode="%s"}' % mode if mode else "")]
                low, high = sorted(float(look[name]) * factor
                                   for look in (before, after))
                if name.startswith("used_memory"):
                    low, high = low / 2, high * 2
                # The connection that reads INFO may or may not count itself.
                slack = {"connected_clients": 1, "http_connections": 1,
                         "requests_inflight": 1}.get(name, 1e-9)
                self.assertLessEqual(low - slack, value)
                self.assertLessEqual(value, high + slack)

    def test_commands(self):
        connection = self.connect()
        connection.call("CONFIG", "RESETSTAT")
        for at in range(7):
            connection.call("SET", "command", "text")
        connection.call("INCR", "command")
        connection.call("GET")
        metrics, info = self.metrics(), self.info()
        self.assertEqual(metrics['heatsink_commands_total{command="set"}'], 7)
        self.assertEqual(metrics['heatsink_command_failed_total{command="incr"}'], 1)
        self.assertEqual(metrics['heatsink_command_rejected_total{command="get"}'], 1)
        self.assertEqual(metrics['heatsink_commands_total{command="config|resetstat"}'], 1)
        for name in ("set", "incr", "get"):
            stats = dict(part.split("=") for part in info["cmdstat_" + name].split(","))
            for field, metric in (("calls", "commands_total"),
                                  ("failed_calls", "command_failed_total"),
                                  ("rejected_calls", "command_rejected_total")):
                self.assertEqual(metrics['heatsink_%s{command="%s"}' % (metric, name)],
                                 float(stats[field]))
            self.assertAlmostEqual(metrics['heatsink_command_seconds_total{command="%s"}' % name],
                                   float(stats["usec"]) / 1e6, delta=1e-6)

    def test_partitions(self):
        """Counters count every request once, and the histogram's sum equals their total."""
        def totals(kind):
            return sum(value for name, value in self.metrics().items()
                       if name.startswith(f"heatsink_partition_{kind}{{"))
        before = {kind: totals(kind) for kind in ("reads_total", "writes_total", "ops_total")}
        connection = self.connect()
        for at in range(100):
            connection.call("SET", f"partition:{at}", at)
            connection.call("GET", f"partition:{at}")
            connection.call("GET", f"partition:{at}")
        wait_for(self, "all are counted", lambda: totals("ops_total") - before["ops_total"] == 300)
        self.assertEqual(totals("reads_total") - before["reads_total"], 200)
        self.assertEqual(totals("writes_total") - before["writes_total"], 100)
        metrics = self.metrics()
        prefix = "heatsink_partition_request_duration_seconds"
        for partition in range(8):
            name = f'partition="{partition}"'
            buckets = [(float(bound), value) for key, value in metrics.items()
                       for bound in re.findall(r'_bucket\{%s,le="(.+)"\}' % name, key)]
            bounds, counts = zip(*buckets)
            self.assertEqual(list(bounds), sorted(bounds), "bounds rise")
            self.assertEqual(list(counts), sorted(counts), "and counts with them")
            self.assertEqual(buckets[-1][0], float("inf"))
            self.assertEqual(buckets[-1][1], metrics[f"{prefix}_count{{{name}}}"])
            self.assertEqual(buckets[-1][1], metrics[f"heatsink_partition_ops_total{{{name}}}"])
            self.assertGreater(metrics[f"{prefix}_sum{{{name}}}"], 0)

    def test_keys_are_named_only_on_request(self):
        self.heat_up("secret:key")
        wait_for(self, "a hot key", lambda: self.json("/api/heat?window=long")["rows"])
        self.assertNotIn("secret", self.page("/metrics"))
        self.assertNotIn("heatsink_key_", self.page("/metrics"))


class HotKeys(HttpCase):
    args = ("--workers", "2", "--sync", "off", "--metrics-keys", "20",
            "--metrics-key-names", "plain")

    def setUp(self):
        for key in WEIRD:
            self.heat_up(key)

    def wait_hot(self):
        """Waits until all these keys are hot; returns their rows."""
        found = {}

        def all_there():
            rows = self.json("/api/heat?count=100&window=long")["rows"]
            found.update({row["key"]: row for row in rows})
            return {escape(key) for key in WEIRD} <= set(found)
        wait_for(self, "every hot key", all_there)
        return found

    def test_json_of_weird_keys(self):
        known = set(self.wait_hot())
        tops = {row["top_key"] for row in self.json("/api/partitions?window=long")["rows"]}
        self.assertLessEqual(tops - {""}, known)
        self.assertTrue(tops - {""})
        for key in WEIRD:
            query = "".join("%%%02x" % byte for byte in key)
            rows = self.json("/api/heat?window=long&prefix=" + query)["rows"]
            self.assertIn(escape(key), [row["key"] for row in rows])

    def test_metrics_of_weird_keys(self):
        self.wait_hot()
        _, _, body = self.ask("/metrics")
        self.assertEqual(promtool(body), "")
        page = body.decode()
        for key in WEIRD:
            self.assertIn('\nheatsink_key_ops{key="%s"} ' % label(escape(key)), page)

    def test_hashed_names_and_how_many(self):
        self.wait_hot()
        connection = self.connect()
        connection.call("HELLO", "3")
        try:
            connection.call("CONFIG", "SET", "metrics-key-names", "hash", "metrics-keys", "3")
            page = self.page("/metrics")
            names = re.findall(r'^heatsink_key_ops\{key="(.*)"\} ', page, re.M)
            self.assertEqual(len(names), 3)
            hashes = {pairs(connection.call("HEAT", "KEY", key))["hash"].text.decode()
                      for key in (*WEIRD, "tenant:1:a")}
            self.assertLessEqual(set(names), hashes)
            self.assertEqual(promtool(page.encode()), "")
        finally:
            connection.call("CONFIG", "SET", "metrics-key-names", "plain", "metrics-keys", "20")

    def test_a_long_key_is_cut(self):
        self.heat_up(b"long:" + b"\xff" * 65531, 20)

        def row():
            return next((row for row in self.json("/api/heat?count=100&window=long")["rows"]
                         if row["key"].startswith("long:")), None)
        wait_for(self, "the long key", row)
        self.assertRegex(row()["key"], r"^long:(\\xff)+…\(65536 bytes, #[0-9a-f]{16}\)$")
        _, _, body = self.ask("/metrics")
        self.assertEqual(promtool(body), "")

    def test_fields_are_those_of_heat(self):
        self.wait_hot()
        connection = self.connect()
        connection.call("HELLO", "3")
        for path, command in (
                ("/api/heat?window=long", ("HEAT", "TOP", "WINDOW", "long")),
                ("/api/heat?what=slots&window=long", ("HEAT", "SLOTS", "WINDOW", "long")),
                ("/api/partitions?window=long", ("HEAT", "PARTITIONS", "WINDOW", "long"))):
            with self.subTest(path):
                rows = self.json(path)["rows"]
                theirs = connection.call(*command).items
                self.assertGreater(len(rows), 0)
                self.assertEqual(len(rows), len(theirs))
                self.assertEqual(list(rows[0]), list(pairs(theirs[0])))
        self.heat_up("tenant:1:a")
        prefixes = "/api/heat?what=prefixes&window=long"
        wait_for(self, "a prefix", lambda: self.json(prefixes)["rows"])
        theirs = connection.call("HEAT", "PREFIXES", "WINDOW", "long").items
        self.assertEqual(list(self.json(prefixes)["rows"][0]), list(pairs(theirs[0])))

    def test_sorting_and_count(self):
        self.wait_hot()
        rows = self.json("/api/heat?window=long&count=5&by=reads")["rows"]
        self.assertEqual(len(rows), 5)
        reads = [row["reads"] for row in rows]
        self.assertEqual(reads, sorted(reads, reverse=True))

    def test_history(self):
        wait_for(self, "two seconds", lambda: len(self.json("/api/history")["rows"]) >= 2)
        answer = self.json("/api/history?what=partitions&seconds=2")
        self.assertEqual(answer["what"], "partitions")
        times = [second["time"] for second in answer["rows"]]
        self.assertEqual(len(times), 2)
        self.assertLess(*times)
        self.assertEqual([row["id"] for row in answer["rows"][0]["partitions"]],
                         [str(number) for number in range(8)])
        ranges = self.json("/api/history?what=ranges&seconds=1")["rows"]
        self.assertEqual(len(ranges[0]["ranges"]), 256)

        def keys():
            rows = self.json("/api/history?what=top&seconds=600")["rows"]
            return {key["key"] for second in rows for key in second["keys"]}
        wait_for(self, "hot keys in the history",
                 lambda: self.heat_up("plain", 100) or "plain" in keys())


class BadClients(unittest.TestCase):
    def start(self, *args):
        server = servers.Heatsink("--sync", "off", "--workers", "2", *args)
        self.addCleanup(server.close)
        self.redis = server.raw()
        return server

    def connect(self, server, receive_bytes=None):
        client = socket.socket()
        self.addCleanup(client.close)
        if receive_bytes:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        client.settimeout(GUARD_S)
        client.connect(("127.0.0.1", server.http_port))
        return client

    def info(self, server, name):
        text = self.redis.call("INFO", "http").text.decode()
        return int(re.search(rf"^{name}:(\d+)", text, re.M).group(1))

    def test_client_that_never_reads(self):
        server = self.start(*IMPATIENT, "--partitions", "64")
        client = self.connect(server, 4096)
        request = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"
        client.settimeout(None)
        client.setblocking(False)
        for _ in range(200):
            try:
                client.send(request)
            except (BlockingIOError, ConnectionError):
                break

        def dropped():
            # Other clients are served meanwhile.
            self.assertEqual(ask(server.http_port, "/healthz")[0], 200)
            return self.info(server, "http_timeouts") > 0
        wait_for(self, "it is dropped", dropped)
        wait_for(self, "nobody is left", lambda: self.info(server, "http_connections") == 0)

    def test_client_that_never_finishes_a_request(self):
        server = self.start(*IMPATIENT)
        silent, half = self.connect(server), self.connect(server)
        half.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n")
        trickle = self.connect(server)
        trickle.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nX: ")
        ended = threading.Event()

        def drip():
            try:
                while not ended.is_set():
                    trickle.send(b"X")
                    ended.wait(0.05)
            except OSError:
                pass
        dripping = threading.Thread(target=drip)
        dripping.start()
        self.addCleanup(dripping.join)
        self.addCleanup(ended.set)
        for client in (silent, half, trickle):
            try:
                while client.recv(4096):
                    pass
            except ConnectionResetError:
                pass
        self.assertEqual(self.info(server, "http_timeouts"), 3)

    def test_health_checks_while_every_place_is_taken(self):
        """With all connections in use, idle ones and half-sent requests are closed, so a health check gets no 503."""
        half = (b"", b"GET /met", b"GET /metrics HTTP/1.1\r\n",
                b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nX: ")
        for said in half:
            with self.subTest(said):
                server = self.start("--http-timeout", "3600")
                clients = []
                for number in range(2 * CONNECTIONS_MAX):
                    clients.append(self.connect(server))
                    clients[-1].sendall(said)
                    if number % 64 == 63:
                        self.assertEqual(ask(server.http_port, "/healthz")[0], 200)
                        self.assertEqual(ask(server.http_port, "/readyz")[0], 200)
                        self.assertEqual(ask(server.http_port, "/metrics")[0], 200)
                self.assertEqual(self.info(server, "http_refused"), 0)
                self.assertEqual(self.info(server, "http_timeouts"), 0)
                self.assertGreaterEqual(self.info(server, "http_idle_closed"), CONNECTIONS_MAX)
                self.assertLessEqual(self.info(server, "http_connections"), CONNECTIONS_MAX)
                # The newest connections are still open.
                if not said:
                    clients[-1].sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
                    self.assertIn(b"200 OK", clients[-1].recv(4096))

    def test_what_is_not_http(self):
        server = self.start(*IMPATIENT)
        for junk in (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", b"*1\r\n$4\r\nPING\r\n",
                     b"GET\r\n\r\n", b"\x00" * 5000, b"GET / HTTP/9.9\r\n\r\n",
                     b"GET /" + b"a" * 40000 + b" HTTP/1.1\r\n\r\n",
                     b"GET / HTTP/1.1\r\nHost: a\r\nX: " + b"x" * 40000 + b"\r\n\r\n",
                     b"GET /%zz?%=%&&&=%00 HTTP/1.1\r\nHost: localhost\r\n\r\n"):
            client = self.connect(server)
            try:
                client.sendall(junk)
                client.shutdown(socket.SHUT_WR)
                while client.recv(65536):
                    pass
            except OSError as error:  # the server closed it while it was sending or receiving
                self.assertNotIsInstance(error, TimeoutError)
            self.assertEqual(ask(server.http_port, "/healthz")[0], 200)
        server.check()

    def test_ten_thousand_scrapes(self):
        """As many scrapers as the server accepts, forty times; a Redis client is answered in between."""
        server = self.start()
        client = server.raw()
        scrapers = [http.client.HTTPConnection("127.0.0.1", server.http_port, timeout=GUARD_S)
                    for _ in range(CONNECTIONS_MAX - 6)]
        for scraper in scrapers:
            self.addCleanup(scraper.close)
        for turn in range(40):
            for scraper in scrapers:
                scraper.request("GET", "/metrics")
            for number in range(20):
                self.assertEqual(client.call("INCR", "count").raw, b":%d\r\n" % (20 * turn + number + 1))
            for scraper in scrapers:
                answer = scraper.getresponse()
                self.assertEqual(answer.status, 200)
                self.assertTrue(answer.read().endswith(b"\n"))
        self.assertEqual(self.info(server, "http_requests"), 10000)
        self.assertEqual(self.info(server, "http_errors"), 0)
        self.assertEqual(self.info(server, "http_refused"), 0)


class Starting(FolderCase):
    def serve(self, *args):
        return subprocess.run([servers.heatsink_path(), "serve", "--port", "0", "--data",
                               self.path("data"), *map(str, args)], capture_output=True, text=True,
                              timeout=GUARD_S, check=False)

    def occupied(self):
        """A loopback address used by no other test, with a listener on heatsink's default HTTP port."""
        address = "127.%d.%d.%d" % (100 + os.getpid() % 100, os.getpid() // 100 % 250, 7)
        try:
            listener = socket.create_server((address, 8380))
        except OSError as error:  # another program listens on all addresses: the port is in use as well
            self.assertEqual(error.errno, errno.EADDRINUSE)
        else:
            self.addCleanup(listener.close)
        return address

    def test_the_default_port_is_taken(self):
        address = self.occupied()
        with servers.Heatsink("--http", "8380", "--http-bind", address) as server:
            self.assertTrue(server.client().ping())
            self.assertIsNone(server.http_port)
            server.wait_log(rf"warn .*{address}:8380.*in use.*--http")
            self.assertIn("\r\nhttp_port:0\r\n", server.raw().call("INFO", "http").text.decode())

    def test_another_port_is_taken(self):
        with socket.create_server(("127.0.0.1", 0)) as listener:
            port = listener.getsockname()[1]
            done = self.serve("--http", port)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stdout + done.stderr, rf"127\.0\.0\.1:{port}.*in use.*--http")
        self.assertFalse(os.path.exists(self.path("data")), "nothing was touched")

    def test_none(self):
        with servers.Heatsink("--http", "-1") as server:
            self.assertTrue(server.client().ping())
            self.assertIsNone(server.http_port)

    def test_another_address(self):
        with servers.Heatsink("--http-bind", "::1") as server:
            server.wait_log(rf"http on \[::1\]:{server.http_port}$")
            connection = http.client.HTTPConnection("::1", server.http_port, timeout=GUARD_S)
            connection.request("GET", "/healthz")
            self.assertEqual(connection.getresponse().read(), b"ok\n")
            connection.close()

    def test_address_beyond_loopback_is_logged_as_a_warning(self):
        with servers.Heatsink("--http-bind", "0.0.0.0") as server:
            server.wait_log("warn .*http-bind 0.0.0.0.*can read key names")
            self.assertEqual(ask(server.http_port, "/healthz", headers={"Host": "name"})[0], 200)
        with servers.Heatsink() as server:
            self.assertNotIn("can read key names", server.process.text())

    def test_bad_options(self):
        for args, words in ((("--http-bind", "nowhere"), "http-bind 'nowhere' is not an address"),
                            (("--http-bind", ""), "http-bind '' is not an address"),
                            (("--http", "-2"), "between -1 and 65535"),
                            (("--http", "65536"), "between -1 and 65535"),
                            (("--metrics-keys", "101"), "between 0 and 100"),
                            (("--metrics-key-names", "all"), "hash, plain"),
                            (("--http-timeout", "0"), "between 1 and 3600")):
            with self.subTest(args):
                done = self.serve(*args)
                self.assertEqual(done.returncode, 1)
                self.assertIn(words, done.stdout + done.stderr)


class Ending(unittest.TestCase):
    def test_not_ready_while_shutting_down(self):
        """A client with an unfinished request delays the shutdown; meanwhile /readyz says 503, so that load balancers
        stop sending clients."""
        server = servers.Heatsink("--sync", "off", "--shutdown-timeout", "3600")
        self.addCleanup(server.close)
        client, half = server.raw(), len(resp.encode("PING")) // 2
        client.send(resp.encode("PING") + resp.encode("PING")[:half])
        self.assertEqual(client.read().raw, b"+PONG\r\n")
        self.assertEqual(ask(server.http_port, "/readyz")[::2], (200, b"ready\n"))
        server.signal(15)
        wait_for(self, "not ready", lambda: ask(server.http_port, "/readyz")[0] == 503)
        self.assertEqual(ask(server.http_port, "/readyz")[2], b"not ready: shutting down\n")
        self.assertEqual(ask(server.http_port, "/healthz")[0], 200)
        client.send(resp.encode("PING")[half:])
        self.assertEqual(client.read_to_end(), b"+PONG\r\n")
        self.assertEqual(server.wait(), 0)

    def test_open_connections_do_not_hold_the_end_up(self):
        server = servers.Heatsink("--sync", "off", "--http-timeout", "3600")
        self.addCleanup(server.close)
        idle = socket.create_connection(("127.0.0.1", server.http_port))
        self.addCleanup(idle.close)
        half = socket.create_connection(("127.0.0.1", server.http_port))
        self.addCleanup(half.close)
        half.sendall(b"GET /metrics HTTP/1.1\r\n")
        self.assertEqual(ask(server.http_port, "/healthz")[0], 200)
        self.assertEqual(server.stop(), 0)


if __name__ == "__main__":
    unittest.main()
