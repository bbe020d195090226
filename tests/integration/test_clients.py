"""Goal: clients and tools made for Redis work with heatsink unchanged.

Method: redis-cli, redis-benchmark, python3-redis and the Prometheus exporter, each as its users run it, against one
server. The test checks what they print, return or export, not the commands they use.
"""

import os
import re
import subprocess
import sys
import threading
import time
import unittest
import urllib.error
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

import redis

import servers

GUARD_S = 120


class ClientCase(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = servers.Heatsink("--workers", "2", "--partitions", "4")
        cls.addClassCleanup(cls.server.close)

    def setUp(self):
        self.client = self.server.client(decode_responses=True)
        self.client.flushall()

    def run_tool(self, *command, data=None, status=0):
        """Standard output of a command; checks its exit status."""
        done = subprocess.run([str(word) for word in command], input=data, capture_output=True,
                              text=True, timeout=GUARD_S, check=False)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done.stdout

    def cli(self, *args, **options):
        """Output of redis-cli without the line that it adds when a command took more than half a second."""
        printed = self.run_tool("redis-cli", "-p", self.server.port, *args, **options)
        return re.sub(r"^\(\d+\.\d\ds\)\n", "", printed, flags=re.MULTILINE)


class RedisCli(ClientCase):
    def test_one_command(self):
        self.assertEqual(self.cli("SET", "greeting", "hello world"), "OK\n")
        self.assertEqual(self.cli("GET", "greeting"), "hello world\n")
        self.assertEqual(self.cli("--no-raw", "GET", "greeting"), '"hello world"\n')
        self.assertEqual(self.cli("--no-raw", "GET", "nil"), "(nil)\n")
        self.assertEqual(self.cli("--no-raw", "INCR", "n"), "(integer) 1\n")
        self.assertEqual(self.cli("-r", "3", "INCR", "n"), "2\n3\n4\n")

    def test_errors_reach_the_exit_status(self):
        self.cli("-e", "NOSUCH", status=1)
        self.assertIn("unknown command", self.cli("NOSUCH"))

    def test_commands_from_standard_input(self):
        lines = "SET a 1\nINCR a\nMULTI\nINCR a\nGET a\nEXEC\nGET 'nil'\nPING\n"
        self.assertEqual(self.cli("--no-raw", data=lines).splitlines(), [
            "OK", "(integer) 2", "OK", "QUEUED", "QUEUED", "1) (integer) 3", '2) "3"', "(nil)",
            "PONG"])

    def test_resp3(self):
        self.assertEqual(self.cli("-3", "--no-raw", "GET", "nil"), "(nil)\n")
        printed = self.cli("-3", "--no-raw", "CONFIG", "GET", "maxclients")
        self.assertRegex(printed, r'^1# "maxclients" => "\d+"\n$')
        self.assertEqual(self.cli("--json", "CONFIG", "GET", "nosuch"), "{}\n")

    def test_value_from_standard_input(self):
        self.assertEqual(self.cli("-x", "SET", "big", data="x" * 100000), "OK\n")
        self.assertEqual(self.client.strlen("big"), 100000)

    def test_pipe(self):
        """Mass insertion: raw protocol in, a count of replies out."""
        data = "".join("*3\r\n$3\r\nSET\r\n$%d\r\nk%d\r\n$1\r\nv\r\n" % (len("k%d" % at), at)
                       for at in range(5000))
        printed = self.cli("--pipe", data=data)
        self.assertIn("errors: 0, replies: 5000", printed)
        self.assertEqual(self.client.dbsize(), 5000)

    def test_scan(self):
        self.client.mset({"scan:%d" % at: at for at in range(700)})
        self.client.set("other", 1)
        printed = self.cli("--scan", "--pattern", "scan:*").split()
        self.assertEqual(set(printed), {"scan:%d" % at for at in range(700)})
        self.assertEqual(len(self.cli("--scan").split()), 701)

    def test_bigkeys(self):
        self.client.mset({"small:%d" % at: "x" for at in range(50)})
        self.client.set("huge", "x" * 5000)
        printed = self.cli("--bigkeys")
        self.assertRegex(printed, r"Sampled 51 keys")
        self.assertRegex(printed, r'Biggest string found .*"huge".* has 5000 bytes')

    def test_latency(self):
        """Without a terminal, --latency samples for the interval and prints min, max, average, count."""
        printed = self.cli("--latency", "-i", "0.2")
        self.assertRegex(printed, r"^\d+ \d+ \d+\.\d+ \d+$")

    def test_info_and_docs(self):
        self.assertRegex(self.cli("INFO", "server"), r"(?m)^redis_version:\d+\.\d+\.\d+")
        self.assertIn("summary", self.cli("COMMAND", "DOCS", "GET"))


class RedisBenchmark(ClientCase):
    def bench(self, *args):
        printed = self.run_tool("redis-benchmark", "-p", self.server.port, "--csv", *args)
        self.assertNotIn("WARNING", printed)
        self.assertNotIn("Error", printed)
        rows = [line for line in printed.splitlines() if line.startswith('"')][1:]
        for row in rows:
            self.assertGreater(float(row.split(",")[1].strip('"')), 0, row)
        return [row.split(",")[0].strip('"') for row in rows]

    def test_usual_tests(self):
        self.assertEqual(
            self.bench("-n", 600, "-c", 20, "-t", "ping_inline,ping_mbulk,set,get,incr,mset"),
            ["PING_INLINE", "PING_MBULK", "SET", "GET", "INCR", "MSET (10 keys)"])

    def test_pipelined_random_keys(self):
        self.assertEqual(self.bench("-n", 4000, "-c", 10, "-P", 16, "-r", 1000, "-d", 100,
                                    "-t", "set,get,incr"), ["SET", "GET", "INCR"])
        self.assertEqual(self.client.exists("key:__rand_int__"), 0)
        self.assertGreater(self.client.dbsize(), 500)

    def test_resp3_and_threads(self):
        self.assertEqual(self.bench("-3", "--threads", 2, "-n", 2000, "-P", 4, "-t", "set,get"),
                         ["SET", "GET"])

    def test_new_connection_each_time(self):
        self.assertEqual(self.bench("-k", 0, "-n", 300, "-c", 5, "-t", "get"), ["GET"])

    def test_counts_every_increment(self):
        self.bench("-n", 2000, "-c", 25, "-P", 8, "INCR", "hits")
        self.assertEqual(self.client.get("hits"), "2000")


class PythonRedis(ClientCase):
    def test_strings(self):
        client = self.client
        self.assertTrue(client.set("a", "1"))
        self.assertEqual(client.get("a"), "1")
        self.assertIsNone(client.get("nil"))
        self.assertIsNone(client.set("a", "2", nx=True))
        self.assertEqual(client.set("a", "2", get=True), "1")
        self.assertEqual(client.incr("a", 40), 42)
        self.assertEqual(client.incrbyfloat("a", 0.5), 42.5)
        self.assertEqual(client.append("a", "!"), 5)
        self.assertEqual(client.getrange("a", 0, 1), "42")
        self.assertEqual(client.mget("a", "nil"), ["42.5!", None])
        self.assertTrue(client.mset({"x": 1, "y": 2, "z": 3}))
        self.assertEqual(client.delete("x", "y", "nil"), 2)
        self.assertEqual(client.getdel("z"), "3")
        self.assertEqual(client.setbit("bits", 7, 1), 0)
        self.assertEqual(client.bitcount("bits"), 1)
        with self.assertRaises(redis.ResponseError):
            client.incr("a")

    def test_binary(self):
        client = self.server.client()
        every = bytes(range(256)) * 40
        client.set(every, every)
        self.assertEqual(client.get(every), every)
        self.assertEqual(client.keys(), [every])

    def test_expiry(self):
        client = self.client
        client.set("a", "1", ex=1000)
        self.assertTrue(990 < client.ttl("a") <= 1000)
        self.assertTrue(client.persist("a"))
        self.assertEqual(client.ttl("a"), -1)
        self.assertEqual(client.ttl("nil"), -2)
        self.assertTrue(client.expireat("a", 4102444800))
        self.assertEqual(client.execute_command("EXPIRETIME", "a"), 4102444800)
        self.assertTrue(client.pexpireat("a", 1))
        self.assertEqual(client.exists("a"), 0)

    def test_pipeline_without_transaction(self):
        pipe = self.client.pipeline(transaction=False)
        for at in range(500):
            pipe.set("k%d" % at, at).incr("k%d" % at).get("k%d" % at)
        replies = pipe.execute()
        self.assertEqual(replies[1::3], list(range(1, 501)))
        self.assertEqual(replies[2::3], [str(at) for at in range(1, 501)])

    def test_pipeline_with_transaction(self):
        pipe = self.client.pipeline(transaction=True)
        pipe.set("{t}a", 1).incr("{t}a").mget("{t}a", "{t}b").delete("{t}a")
        self.assertEqual(pipe.execute(), [True, 2, ["2", None], 1])

    def test_error_in_a_pipeline(self):
        self.client.set("{t}s", "text")
        for transaction in (True, False):
            pipe = self.client.pipeline(transaction=transaction)
            pipe.set("{t}a", 1).incr("{t}s").incr("{t}a")
            replies = pipe.execute(raise_on_error=False)
            self.assertIsInstance(replies[1], redis.ResponseError)
            self.assertEqual(replies[2], 2)

    def test_watch_loops(self):
        """Optimistic increments with WATCH from several threads: none is lost."""
        threads, rounds = 4, 25
        self.client.set("balance", 0)

        def run():
            client = self.server.client()
            for _ in range(rounds):
                def add(pipe):
                    value = int(pipe.get("balance"))
                    pipe.multi()
                    pipe.set("balance", value + 1)
                client.transaction(add, "balance")

        workers = [threading.Thread(target=run) for _ in range(threads)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join(GUARD_S)
        self.assertEqual(self.client.get("balance"), str(threads * rounds))

    def test_watch_error(self):
        with self.client.pipeline() as pipe:
            pipe.watch("a")
            self.client.set("a", "changed")
            pipe.multi()
            pipe.set("a", "mine")
            with self.assertRaises(redis.WatchError):
                pipe.execute()

    def test_scan_iter(self):
        self.client.mset({"it:%d" % at: at for at in range(300)})
        self.client.set("other", 1)
        found = list(self.client.scan_iter("it:*", count=17))
        self.assertEqual(len(found), 300)
        self.assertEqual(set(found), {"it:%d" % at for at in range(300)})
        self.assertEqual(len(list(self.client.scan_iter(_type="string"))), 301)
        self.assertEqual(list(self.client.scan_iter(_type="hash")), [])

    def test_client_commands(self):
        client = self.server.client(decode_responses=True, client_name="the-tester")
        rows = client.client_list()
        self.assertIn("the-tester", {row["name"] for row in rows})
        self.assertEqual(client.client_getname(), "the-tester")
        self.assertIn(str(client.client_id()), {row["id"] for row in rows})
        self.assertEqual(client.client_info()["name"], "the-tester")

    def test_config(self):
        before = self.client.config_get("maxclients")["maxclients"]
        self.assertTrue(self.client.config_set("maxclients", 1234))
        self.assertEqual(self.client.config_get("maxclients"), {"maxclients": "1234"})
        self.client.config_set("maxclients", before)
        self.assertTrue(self.client.config_resetstat())
        self.assertIn("port", self.client.config_get("*"))

    def test_info(self):
        self.client.set("a", 1)
        info = self.client.info()
        self.assertEqual(info["tcp_port"], self.server.port)
        self.assertEqual(info["process_id"], self.server.pid)
        self.assertEqual(info["db0"]["keys"], 1)
        self.assertGreater(self.client.info("commandstats")["cmdstat_set"]["calls"], 0)

    def test_other_calls(self):
        client = self.client
        self.assertTrue(client.ping())
        self.assertEqual(client.echo("x"), "x")
        self.assertEqual(len(client.time()), 2)
        self.assertEqual(client.dbsize(), 0)
        before = client.slowlog_len()  # the requests of this test may be logged as well
        shown = len(client.slowlog_get(1000))
        self.assertTrue(before <= shown <= client.slowlog_len(), (before, shown))
        self.assertGreater(client.command_count(), 60)
        self.assertEqual(client.command()["get"]["arity"], 2)
        self.assertEqual(client.object("encoding", "nil"), None)
        client.set("e", "5")
        self.assertEqual(client.object("encoding", "e"), "int")

    def test_lock_without_scripts(self):
        """SET NX PX as a lock: one holder, released by its token only (WATCH, compare, delete)."""
        client = self.client
        self.assertTrue(client.set("lock", "mine", nx=True, px=1000000))
        self.assertIsNone(client.set("lock", "theirs", nx=True, px=1000000))

        def release(token):
            def body(pipe):
                held = pipe.get("lock") == token
                pipe.multi()
                if held:
                    pipe.delete("lock")
            return client.transaction(body, "lock")

        self.assertEqual(release("theirs"), [])
        self.assertEqual(client.get("lock"), "mine")
        self.assertEqual(release("mine"), [1])
        self.assertTrue(client.set("lock", "theirs", nx=True, px=1000000))


class PrometheusExporter(ClientCase):
    def test_scrape(self):
        """With -check-keys and -export-client-list the exporter uses SCAN, TYPE and CLIENT LIST, too."""
        self.client.mset({"exported:%d" % at: "x" * at for at in range(20)})
        self.client.get("exported:1")
        port = servers.ReservedPort()
        exporter = servers.Process([
            "prometheus-redis-exporter", "-redis.addr", "redis://127.0.0.1:%d" % self.server.port,
            "-web.listen-address", "127.0.0.1:%d" % port.number, "-check-keys", "exported:*",
            "-check-single-keys", "exported:7", "-export-client-list", "-include-config-metrics"])
        self.addCleanup(port.release)
        self.addCleanup(exporter.kill9)
        exporter.wait_log("Providing metrics at")
        metrics = self.scrape("http://127.0.0.1:%d/metrics" % port.number)
        self.assertIn("redis_up 1", metrics)
        self.assertIn('redis_exporter_last_scrape_error{err=""} 0', metrics)
        self.assertIn('redis_db_keys{db="db0"} 20', metrics)
        self.assertRegex(metrics, r'(?m)^redis_commands_total\{cmd="get"\} [1-9]')
        self.assertRegex(metrics, r"(?m)^redis_connected_clients [1-9]")
        self.assertRegex(metrics, r"(?m)^redis_memory_used_bytes \d")
        self.assertRegex(metrics, r"(?m)^redis_uptime_in_seconds \d")
        self.assertRegex(metrics, r"(?m)^redis_instance_info\{.*redis_version=")
        self.assertIn('redis_key_size{db="db0",key="exported:7"} 7', metrics)
        self.assertIsNone(re.search(r"level=(error|fatal)", exporter.text()), exporter.text())

    def scrape(self, url):
        """The exporter logs its address just before it listens, so this retries until it answers."""
        guard = time.monotonic() + GUARD_S
        while True:
            try:
                with urllib.request.urlopen(url, timeout=GUARD_S) as answer:
                    return answer.read().decode()
            except urllib.error.URLError as error:
                self.assertIsInstance(error.reason, ConnectionRefusedError)
                self.assertLess(time.monotonic(), guard, "the exporter does not listen")


if __name__ == "__main__":
    unittest.main()
