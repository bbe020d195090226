"""Goal: heatsink storm makes the load that its options ask for, and --verify finds mistakes of a server.

Method: a real redis-server's own counters show the load. A small fake server (tests/lib/fake.py) makes one mistake on
purpose, which --verify must find; the same server causes events that --verify must accept: lost connections, refused
writes, unknown outcomes.
"""
import json
import os
import pty
import signal
import subprocess
import tempfile
import threading
import time
import unittest
import unittest.mock

from fake import FakeServer, Hangup, bulk
from servers import GUARD_S, Process, Redis, ReservedPort, heatsink_path

SANITIZERS = ()  # unit tests cover its parts
HISTORIES = tempfile.TemporaryDirectory()  # histories of servers with planted mistakes: see --check-history


def start(server, *args):
    return Process([heatsink_path(), "storm", "--target", f"127.0.0.1:{server.port}",
                    "--history-folder", HISTORIES.name, *map(str, args)])


def run(server, *args):
    """Runs storm; returns exit code, standard output and standard error."""
    done = subprocess.run([heatsink_path(), "storm", "--target", f"127.0.0.1:{server.port}",
                           "--history-folder", HISTORIES.name, *map(str, args)], capture_output=True, text=True, timeout=GUARD_S)
    return done.returncode, done.stdout, done.stderr


def run_json(test, server, *args, code=0):
    got, out, err = run(server, "--json", *args)
    test.assertEqual(got, code, out + err)
    return json.loads(out)


def calls(server, command):
    return server.client().info("commandstats").get(f"cmdstat_{command}", {}).get("calls", 0)


class Load(unittest.TestCase):
    """The server's counters match the options."""

    def test_count_and_kinds(self):
        with Redis() as server:
            result = run_json(self, server, "--command", "mixed", "--writes", "0.5", "--count",
                              20000, "--keys", 100, "--pipeline", 7, "--connections", 3)
            self.assertEqual(result["sent"], 20000)
            self.assertEqual(result["answered"], 20000)
            self.assertEqual(result["errors"], {})
            self.assertEqual(calls(server, "get"), result["reads"]["requests"])
            writes = calls(server, "set") + calls(server, "incr")
            self.assertEqual(writes, result["writes"]["requests"])
            self.assertEqual(writes + calls(server, "get"), 20000)
            # Half of the requests are writes, half of the keys are counters.
            self.assertAlmostEqual(calls(server, "set"), 5000, delta=500)
            self.assertAlmostEqual(calls(server, "incr"), 5000, delta=500)

    def test_one_command_each(self):
        for command in ("get", "set", "incr"):
            with self.subTest(command=command), Redis() as server:
                run_json(self, server, "--command", command, "--count", 500, "--keys", 10)
                for name in ("get", "set", "incr"):
                    self.assertEqual(calls(server, name), 500 if name == command else 0)

    def test_shares_of_keys(self):
        with Redis() as server:
            run_json(self, server, "--command", "incr", "--count", 20000, "--keys", 10,
                     "--shape", "viral:0.4", "--prefix", "s:")
            client = server.client()
            counts = [int(client.get(f"s:n:{i:012}")) for i in range(10)]
            self.assertEqual(sum(counts), 20000)
            self.assertAlmostEqual(counts[0], 8000, delta=400)
            for count in counts[1:]:
                self.assertAlmostEqual(count, 12000 / 9, delta=250)

    def test_same_seed_same_keys(self):
        seen = []
        for seed in (3, 3, 4):
            with Redis() as server:
                run_json(self, server, "--command", "incr", "--count", 300, "--keys", 1000,
                         "--connections", 1, "--shape", "zipf:0.99", "--seed", seed)
                client = server.client()
                seen.append({key: client.get(key) for key in client.keys()})
        self.assertEqual(seen[0], seen[1])
        self.assertNotEqual(seen[0], seen[2])

    def test_load_fills_every_key(self):
        with Redis() as server:
            run_json(self, server, "--load", "--command", "get", "--keys", 5000, "--count", 1,
                     "--value-size", 33, "--threads", 2)
            client = server.client()
            self.assertEqual(client.dbsize(), 5000)
            self.assertEqual(client.strlen("key:000000004999"), 33)

    def test_threads_share_the_count(self):
        with Redis() as server:
            result = run_json(self, server, "--threads", 3, "--count", 1001, "--connections", 4,
                              "--command", "set", "--keys", 10)
            self.assertEqual(result["answered"], 1001)
            self.assertEqual(calls(server, "set"), 1001)
            self.assertEqual(server.client().info("stats")["total_connections_received"], 6)

    def test_large_values(self):
        with Redis() as server:
            result = run_json(self, server, "--value-size", "300kb", "--keys", 20, "--writes",
                              "0.5", "--count", 400, "--pipeline", 4, "--verify")
            self.assertEqual(result["answered"], 400)
            self.assertTrue(result["verify"]["ok"])

    def test_open_loop_sends_at_the_given_rate(self):
        with Redis() as server:
            result = run_json(self, server, "--rate", 5000, "--count", 1000, "--command", "get")
            self.assertEqual(result["answered"], 1000)
            self.assertEqual(calls(server, "get"), 1000)

    def test_a_stall_shows_in_the_open_loop(self):
        """A pause of 400 ms delays every request due in it, not only the one in flight."""
        def pause(_server, _connection, number, _args):
            if number == 10:
                time.sleep(0.4)

        with FakeServer(pause) as server:
            result = run_json(self, server, "--rate", 500, "--count", 200, "--connections", 1,
                              "--command", "get")
            self.assertGreater(result["all"]["p50_us"], 100000)
        with FakeServer(pause) as server:
            result = run_json(self, server, "--count", 200, "--connections", 1, "--command", "get")
            self.assertGreater(result["all"]["max_us"], 400000)
            self.assertLess(result["all"]["p50_us"], result["all"]["max_us"] / 2)

    def test_a_target_too_slow_leaves_requests_unsent(self):
        def slow(_server, _connection, _number, _args):
            time.sleep(0.02)

        with FakeServer(slow) as server:
            result = run_json(self, server, "--rate", 1000, "--duration", "300ms",
                              "--connections", 1, "--command", "get")
            self.assertGreater(result["overdue"], 100)
            self.assertEqual(result["overdue"] + result["sent"], 300)


class Limits(unittest.TestCase):
    def test_a_reply_that_is_too_large(self):
        """An array whose second element would exceed the largest reply: storm does not wait for it."""
        def boast(_server, _connection, number, _args):
            return b"*2\r\n" + bulk(b"x" * (2 << 20)) + b"$%d\r\n" % (512 << 20) if number == 1 else None

        with FakeServer(boast) as server:
            code, out, err = run(server, "--count", 20, "--connections", 1, "--command", "get")
            self.assertEqual((code, err), (0, ""))
            self.assertRegex(out, r" 1 sent and not answered")
            self.assertIn("last error: the server's reply exceeds the size limit", out)


def setUpModule():
    """A server that stops answering in the middle of a run; its storm waits 30 seconds while other tests run."""
    asleep = threading.Event()

    def fall_silent(_server, _connection, number, _args):
        if number > 10:
            asleep.wait()

    Silence.server = unittest.enterModuleContext(FakeServer(fall_silent))
    unittest.addModuleCleanup(asleep.set)
    Silence.storm = start(Silence.server, "--count", 100, "--connections", 1, "--command", "get")


class Silence(unittest.TestCase):
    def test_a_run_of_so_many_requests_ends(self):
        self.assertEqual(self.storm.wait(), 1, self.storm.text())
        self.assertRegex(self.storm.text(), r" 1 sent and not answered")
        self.assertIn("last error: no answer for 30 s", self.storm.text())


class Words(unittest.TestCase):
    """Output and options as users see them."""

    def test_table(self):
        with Redis() as server:
            code, out, err = run(server, "--count", 1000, "--writes", "0.5", "--keys", 10)
            self.assertEqual((code, err), (0, ""))
            for word in ("p50", "p95", "p99", "p99.9", "max", "reads", "writes", "per second"):
                self.assertIn(word, out)

    def test_errors_by_first_word(self):
        def refuse(_server, _connection, number, _args):
            if number % 10 == 0:
                return b"-OOM store full: 1 of 1 bytes\r\n"
            return b"-LOADING later\r\n" if number % 10 == 1 else None

        with FakeServer(refuse) as server:
            result = run_json(self, server, "--count", 100, "--command", "set", code=3)
            self.assertEqual(result["errors"], {"OOM": 10, "LOADING": 10})
        with FakeServer(refuse) as server:
            code, out, _ = run(server, "--count", 100, "--command", "get")
            self.assertEqual(code, 3)
            self.assertIn("errors OOM, such as: OOM store full", out)

    def test_errors_while_loading(self):
        def refuse(_server, _connection, number, _args):
            return b"-OOM store full\r\n" if number == 1 else None

        with FakeServer(refuse) as server:
            code, _, err = run(server, "--load", "--keys", 10, "--count", 100, "--command", "get")
            self.assertEqual(code, 3)
            self.assertIn("1 errors before or after the run", err)

    def test_bad_words(self):
        for args, complaint in (
                (["--nonsense"], "unknown option '--nonsense'"),
                (["storm"], "unknown option 'storm'"),
                (["--patience", "1s"], "option '--patience' is now called '--resend-timeout'"),
                (["--judge=file"], "option '--judge' is now called '--check-history'"),
                (["-"], "unknown option '-'"),
                (["--keys"], "--keys needs N"),
                (["--keys", "0"], "--keys: bad value '0'"),
                (["--keys=many"], "--keys: bad value 'many'"),
                (["--shape", "zapf:1"], "--shape: bad value 'zapf:1'"),
                (["--command", "hget"], "--command: bad value 'hget'"),
                (["--writes", "1.5"], "--writes: bad value '1.5'"),
                (["--duration", "5y"], "--duration: bad value '5y'"),
                (["--target", "somewhere"], "--target: bad value 'somewhere'"),
                (["--target", "no.such.host.invalid:1"], "no.such.host.invalid"),
                (["--json=yes"], "--json takes no value"),
                (["--command", "get", "--writes", "0.5"], "--command get writes nothing"),
                (["--threads", "2", "--connections", "1"], "--threads"),
                (["--threads", "2", "--verify"], "--verify works on one thread"),
                (["--value-size", "10", "--verify"], "--value-size"),
                (["--shape", "80/0"], "--shape: bad value '80/0'"),
                (["--shape", "flash", "--threads", "2"], "--shape flash"),
                (["--ordered", "--threads", "2"], "--ordered works on one thread"),
                (["--ordered", "--rate", "100"], "--ordered is a closed loop"),
                (["--ordered", "--command", "all"], "--ordered is a closed loop"),
                (["--ordered", "--keys", "10000001"], "--verify and --ordered need memory"),
                (["--no-final"], "--no-final needs --verify")):
            with self.subTest(args=args):
                done = subprocess.run([heatsink_path(), "storm", *args], capture_output=True,
                                      text=True, timeout=GUARD_S)
                self.assertEqual(done.returncode, 1)
                self.assertIn(complaint, done.stderr)
                self.assertEqual(done.stderr.count("\n"), 1)

    def test_help(self):
        done = subprocess.run([heatsink_path(), "storm", "--help"], capture_output=True, text=True,
                              timeout=GUARD_S)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        for name in ("--target", "--cluster", "--user", "--tls-ca-cert-file", "--shape", "--rate", "--verify",
                     "(default: 127.0.0.1:6380)"):
            self.assertIn(name, " ".join(done.stdout.split()))
        self.assertLessEqual(max(map(len, done.stdout.splitlines())), 80)

    def test_progress_line_on_a_terminal_only(self):
        with Redis() as server:
            words = ["--command", "get", "--rate", "1000"]
            _, _, err = run(server, "--duration", "1200ms", *words)
            self.assertEqual(err, "")
            ours, theirs = pty.openpty()
            command = [heatsink_path(), "storm", "--target", f"127.0.0.1:{server.port}",
                       "--duration", f"{GUARD_S}s", *words]
            with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=theirs) as child:
                os.close(theirs)
                shown, told = b"", False
                try:
                    while more := os.read(ours, 1000):
                        shown += more
                        if b" answers " in shown and not told:
                            child.send_signal(signal.SIGINT)
                            told = True
                except OSError:  # storm has closed its end of the terminal
                    pass
                os.close(ours)
                self.assertEqual(child.wait(GUARD_S), 0)
            self.assertIn(b" answers ", shown)
            self.assertIn(b"\r", shown)

    def test_interrupt_ends_it_with_a_report(self):
        with Redis() as server:
            storm = start(server, "--duration", "1h", "--command", "set", "--keys", 10, "--verify")
            while calls(server, "set") < 100:
                pass
            storm.signal(signal.SIGINT)
            self.assertEqual(storm.wait(), 0)
            self.assertIn("all replies are correct", storm.text())


class Connecting(unittest.TestCase):
    def test_server_unreachable(self):
        port = ReservedPort()
        self.addCleanup(port.release)
        done = subprocess.run([heatsink_path(), "storm", "--target", f"127.0.0.1:{port.number}",
                               "--retries", "1"], capture_output=True, text=True, timeout=GUARD_S)
        self.assertEqual(done.returncode, 1)
        self.assertIn("could not connect: connection refused", done.stderr)

    def test_server_unreachable_at_the_first_try(self):
        """An unreachable server fails the first connection at once, without the default of twenty retries."""
        port = ReservedPort()
        self.addCleanup(port.release)
        storm = Process([heatsink_path(), "storm", "--target", f"127.0.0.1:{port.number}",
                         "--connections", "3"])
        self.assertEqual(storm.wait(), 1)
        self.assertIn(f"127.0.0.1:{port.number}: could not connect: connection refused "
                      "(3 connects failed)", storm.text())

    def test_password(self):
        with Redis("--requirepass", "secret") as server:
            client = server.client(password="secret")
            result = run_json(self, server, "--password", "secret", "--count", 100)
            self.assertEqual((result["answered"], result["errors"]), (100, {}))
            code, _, err = run(server, "--password", "wrong", "--count", 100)
            self.assertEqual(code, 1)
            self.assertRegex(err, r"could not connect: cannot log in as 'default': check .*--password.*WRONGPASS")
            code, _, err = run(server, "--count", 100)
            self.assertEqual(code, 1)
            self.assertRegex(err, r"could not connect: cannot log in .*--password.*it requires a password")
            self.assertTrue(client.ping())

    def test_password_of_the_environment_and_of_a_file(self):
        with Redis("--requirepass", "secret") as server, tempfile.NamedTemporaryFile("w") as file:
            file.write("secret\n")
            file.flush()
            result = run_json(self, server, "--password-file", file.name, "--count", 100)
            self.assertEqual((result["answered"], result["errors"]), (100, {}))
            with unittest.mock.patch.dict(os.environ, HEATSINK_PASSWORD="secret"):
                result = run_json(self, server, "--count", 100)
            self.assertEqual((result["answered"], result["errors"]), (100, {}))
            code, _, err = run(server, "--password-file", file.name + ".no", "--count", 100)
            self.assertEqual(code, 1)
            self.assertIn(f"--password-file {file.name}.no: No such file or directory", err)

    def test_lost_connections_come_back(self):
        with Redis() as server:
            storm = start(server, "--duration", f"{GUARD_S}s", "--keys", 50, "--writes", "0.5",
                          "--verify", "--json", "--connections", 10, "--pipeline", 4)
            for sets in (100, 1000, 2000, 5000, 10000):  # no kill after the last number
                while storm.child.poll() is None and calls(server, "set") < sets:
                    pass
                if sets < 10000:
                    server.client().client_kill_filter(_type="normal", skipme=True)
            storm.signal(signal.SIGINT)
            self.assertEqual(storm.wait(), 0, storm.text())
            result = json.loads(storm.text())
            self.assertGreater(result["disconnects"], 0)
            self.assertEqual(result["answered"] + result["lost"], result["sent"])
            self.assertTrue(result["verify"]["ok"])

    def test_unsent_requests_are_not_lost(self):
        """Most of 64 MB did not fit into socket buffers when the server went away: these requests are unsent."""
        def hang_up(_server, _connection, number, _args):
            if number == 3:
                raise Hangup()

        with FakeServer(hang_up) as server:
            result = run_json(self, server, "--count", 100, "--connections", 1, "--pipeline", 64, "--keys", 5,
                              "--command", "set", "--writes", 1, "--value-size", "1mb", "--verify")
            self.assertEqual((result["sent"], result["answered"] + result["lost"]), (100, 100))
            self.assertGreater(result["lost"], 0)
            self.assertGreater(result["unsent"], 20)
            self.assertEqual(result["verify"]["unknown"], result["lost"])

    def test_server_that_never_comes_back(self):
        def leave(server, _connection, number, _args):
            if number > 500:
                raise Hangup()

        with FakeServer(leave) as server:
            result = run_json(self, server, "--count", 1000, "--connections", 2, "--retries", 2,
                              "--verify", "--command", "set", "--keys", 10, code=1)
            self.assertEqual(result["given_up"], 2)
            self.assertIn("could not be read at the end", result["verify"]["failures"][0])

    def test_malformed_replies(self):
        def babble(_server, _connection, number, _args):
            return b"what?\r\n" if number == 50 else None

        with FakeServer(babble) as server:
            code, out, _ = run(server, "--count", 200, "--command", "get")
            self.assertEqual(code, 0)
            self.assertIn("the server's reply is not RESP", out)


class Verify(unittest.TestCase):
    """Planted mistakes are found; lost connections and refusals are not taken for mistakes."""

    def judge(self, mischief, *args, code):
        with FakeServer(mischief) as server:
            result = run_json(self, server, "--verify", "--count", 2000, "--keys", 4,
                              "--connections", 5, "--writes", "0.5", *args, code=code)
            self.assertEqual(result["verify"]["ok"], code != 1)
            return "\n".join(result["verify"]["failures"])

    def test_honest_server(self):
        self.judge(None, "--pipeline", 3, "--load", code=0)

    def test_against_redis(self):
        with Redis() as server:
            for shape in ("uniform", "viral:0.7", "zipf:1.2", "moving:50ms"):
                with self.subTest(shape=shape):
                    result = run_json(self, server, "--verify", "--shape", shape, "--keys", 30,
                                      "--writes", "0.5", "--count", 30000, "--pipeline", 8)
                    self.assertTrue(result["verify"]["ok"])
                    self.assertGreater(result["verify"]["checked"], 30000)

    def test_write_acknowledged_and_lost(self):
        def lose(_server, _connection, number, args):
            return b"+OK\r\n" if args[0] == b"SET" and number > 1900 else None

        self.assertIn("replaced", self.judge(lose, "--command", "set", code=1))

    def test_lost_write_found_by_the_final_read(self):
        def lose(_server, _connection, number, args):
            return b"+OK\r\n" if args[0] == b"SET" and number == 2000 else None

        found = self.judge(lose, "--command", "set", "--writes", "1", "--connections", "1", code=1)
        self.assertIn("at the end", found)

    def test_key_vanishes(self):
        def drop(server, _connection, number, _args):
            if number == 1000:
                server.data.clear()

        found = self.judge(drop, "--command", "set", "--keys", "100", code=1)
        self.assertIn("an acknowledged SET is lost: no value", found)

    def test_value_cut_short(self):
        def cut(server, _connection, number, args):
            if args[0] == b"SET" and number > 1000:
                server.data[args[1]] = args[2][:60]
                return b"+OK\r\n"
            return None

        self.assertIn("a damaged value was read", self.judge(cut, "--command", "set", code=1))

    def test_increment_answered_twice(self):
        def twice(server, _connection, number, args):
            if args[0] == b"INCR" and number > 1000 and not server.data.get("done"):
                server.data["done"] = b"1"
                return b":%d\r\n" % int(server.data[args[1]])
            return None

        self.assertIn("two INCRs were answered", self.judge(twice, "--command", "incr", code=1))

    def test_increment_lost(self):
        """Only the sum at the end shows the lost increment."""
        def lose(server, _connection, number, args):
            if args[0] == b"INCR" and number == 2001:  # the first request was a read before the run
                return b":%d\r\n" % (int(server.data[args[1]]) + 1)
            return None

        found = self.judge(lose, "--command", "incr", "--writes", "1", "--keys", "1",
                           "--connections", "1", code=1)
        self.assertIn("the sum is 1999, but start and acknowledged increments give 2000", found)

    def test_increment_counted_double(self):
        def double(server, _connection, number, args):
            if args[0] == b"INCR" and number == 1000:
                server.serve(args)
            return None

        self.judge(double, "--command", "incr", "--keys", "1", "--writes", "1", code=1)

    def test_stale_read(self):
        past = {}

        def stale(server, _connection, number, args):
            if args[0] == b"SET" and number < 500:
                past[args[1]] = args[2]
            if args[0] == b"GET" and number > 1500 and args[1] in past:
                return b"$%d\r\n%s\r\n" % (len(past[args[1]]), past[args[1]])
            return None

        self.judge(stale, "--command", "set", code=1)

    def test_pipelined_read_overtakes_its_write(self):
        """A GET returns the value from before the SET that precedes it in the pipeline."""
        last = {}

        def overtake(server, connection, number, args):
            if args[0] == b"SET":
                last[connection] = (args[1], server.data.get(args[1]))
            elif last.get(connection, (None,))[0] == args[1] and number > 1000:
                return bulk(last[connection][1])
            return None

        self.judge(overtake, "--command", "set", "--pipeline", "8", "--connections", "1", code=1)

    def test_connections_lost_before_and_after_the_deed(self):
        def hang_up(server, _connection, number, args):
            if number % 97 == 0:
                if number % 2:
                    server.serve(args)
                raise Hangup()

        self.judge(hang_up, "--pipeline", 4, code=0)

    def test_refused_and_unknown(self):
        def refuse(server, _connection, number, args):
            if args[0] == b"GET" or number % 7:
                return None
            if number % 3 == 0:
                return b"-OOM store full\r\n"
            if number % 3 == 1:
                server.serve(args)
            return b"-ERR the partition went away, the outcome is unknown\r\n"

        self.judge(refuse, code=3)

    def test_values_from_an_earlier_run_are_no_mistake(self):
        with FakeServer() as server:
            for _ in range(2):
                run_json(self, server, "--verify", "--count", 500, "--keys", 20, "--writes", "0.3")


class Overlaps(FakeServer):
    """Counts writes that overlap with another request for the same key."""

    def __init__(self):
        super().__init__()
        self.guard = threading.Condition()
        self.requests = 0
        self.under_way = {}  # key: (requests, writes) in flight
        self.overlaps = 0

    def answer(self, connection, args):
        write = args[0] != b"GET"
        with self.guard:
            requests, writes = self.under_way.get(args[1], (0, 0))
            self.overlaps += bool(writes or (write and requests))
            self.under_way[args[1]] = (requests + 1, writes + write)
            self.requests += 1
            self.guard.notify_all()
            if write:  # gives an overlapping request 10 ms to arrive
                came = self.requests
                self.guard.wait_for(lambda: self.requests > came, 0.01)
        reply = super().answer(connection, args)
        with self.guard:
            requests, writes = self.under_way[args[1]]
            self.under_way[args[1]] = (requests - 1, writes - write)
        return reply


class Ordered(unittest.TestCase):
    """`--ordered`: requests of one key are sent one after the other, so that --verify finds every old value."""

    LOAD = ("--command", "set", "--writes", "0.2", "--keys", 4, "--connections", 16, "--count", 3000)

    def test_writes_are_alone(self):
        with Overlaps() as server:
            result = run_json(self, server, "--ordered", *self.LOAD)
            self.assertEqual((result["answered"], server.overlaps), (3000, 0))
            self.assertGreater(result["waited"], 0)
        with Overlaps() as server:
            run_json(self, server, *self.LOAD)
            self.assertGreater(server.overlaps, 0)

    def test_shapes_against_redis(self):
        for shape in ("uniform", "80/20", "99/1", "flash:500"):
            for pipeline in (1, 8):
                with self.subTest(shape=shape, pipeline=pipeline), Redis() as server:
                    result = run_json(self, server, "--ordered", "--verify", "--no-final", "--shape",
                                      shape, "--command", "set", "--writes", "0.05", "--keys", 200,
                                      "--count", 20000, "--connections", 32, "--pipeline", pipeline)
                    self.assertEqual((result["sent"], result["answered"]), (20000, 20000))
                    self.assertEqual(result["verify"]["checked"], 20000)
                    self.assertEqual(calls(server, "get"), result["reads"]["requests"])
                    self.assertEqual(calls(server, "set"), result["writes"]["requests"])
                    self.assertAlmostEqual(calls(server, "set"), 1000, delta=200)

    def test_every_old_value_is_found(self):
        """The server returns the value from before the last write to one read. Without --ordered this often goes
        unnoticed, because the write may have come after the read."""
        before, lies = {}, []

        def forget(server, _connection, number, args):
            if args[0] == b"SET":
                before[args[1]] = server.data.get(args[1])
            elif number > 500 and args[1] in before:
                lies.append(args[1])
                return bulk(before.pop(args[1]))
            return None

        with FakeServer(forget) as server:
            code, out, _ = run(server, "--ordered", "--verify", "--no-final", "--json", *self.LOAD)
            found = json.loads(out)["verify"]
        self.assertEqual((code, found["ok"]), (1, False))
        self.assertGreater(len(lies), 100)
        self.assertEqual(found["failed"], len(lies))

    def test_counters_too(self):
        with Redis() as server:
            result = run_json(self, server, "--ordered", "--verify", "--command", "mixed", "--writes",
                              "0.3", "--keys", 6, "--count", 10000, "--connections", 20)
            self.assertEqual(result["answered"], 10000)

    def test_lost_connections_give_their_turn_back(self):
        def hang_up(server, _connection, number, args):
            if number % 97 == 0:
                if number % 2:
                    server.serve(args)
                raise Hangup()

        with FakeServer(hang_up) as server:
            result = run_json(self, server, "--ordered", "--verify", *self.LOAD)
            self.assertEqual(result["answered"] + result["lost"], 3000)
            self.assertGreater(result["lost"], 0)


class All(unittest.TestCase):
    """`--command all --verify` finds an order that explains every reply, or reports that there is none."""

    def judge(self, mischief, *args, code, count=4000):
        """A mistake that later writes hide before any read cannot be seen, so one of three runs must find
        `mischief`."""
        for seed in ("1", "2"):
            try:
                return self.judge_once(mischief, "--seed", seed, *args, code=code, count=count)
            except AssertionError:
                if code != 1:
                    raise
        return self.judge_once(mischief, "--seed", "3", *args, code=code, count=count)

    def judge_once(self, mischief, *args, code, count):
        with FakeServer(mischief) as server:
            result = run_json(self, server, "--verify", "--command", "all", "--count", count, "--keys",
                              3, "--connections", 6, "--pipeline", 4, "--window", 1000, *args,
                              code=code)
            self.assertEqual(result["verify"]["ok"], code != 1)
            self.assertEqual(result["verify"]["undecided"], 0)
            return "\n".join(result["verify"]["failures"])

    def test_honest_server(self):
        self.judge(None, code=0)
        self.judge(None, "--pipeline", 1, code=0)

    def test_against_redis(self):
        with Redis() as server:
            result = run_json(self, server, "--verify", "--command", "all", "--keys", 3, "--count",
                              30000, "--pipeline", 4)
            self.assertEqual(result["errors"], {})
            self.assertTrue(result["verify"]["ok"])
            self.assertGreater(result["verify"]["windows"], 10)
            for command in ("get", "set", "getset", "getdel", "del", "incr", "decr", "incrby", "decrby",
                            "exists", "strlen", "ttl", "pttl", "mget", "mset", "eval", "multi", "exec",
                            "watch"):
                self.assertGreater(calls(server, command), 0, command)

    def test_keys_of_another_run_are_not_met(self):
        with Redis() as server:
            for _ in range(2):
                run_json(self, server, "--verify", "--command", "all", "--keys", 2, "--count", 2000)

    def test_a_target_without_scripts(self):
        """EVAL is left out and named in the result, but is no error."""
        def refuse(_server, _connection, _number, args):
            if args[0] == b"EVAL":
                return b"-ERR unknown command 'EVAL', with args beginning with: \r\n"
            return None

        with FakeServer(refuse) as server:
            code, out, err = run(server, "--verify", "--command", "all", "--count", 2000, "--keys", 3)
            self.assertEqual(code, 0, out + err)
            self.assertNotIn("errors", out)
            self.assertIn("'unknown command' and left out from then on: EVAL", out)

    def test_without_verify(self):
        with Redis() as server:
            result = run_json(self, server, "--command", "all", "--keys", 3, "--count", 5000,
                              "--pipeline", 3)
            self.assertGreaterEqual(result["answered"], 5000)
            self.assertEqual(result["errors"], {})

    def often(self, names, deed):
        """Makes a mistake at every fifth of these commands from the middle on: a single one might be hidden by a SET
        before any read."""
        met = []

        def mischief(server, connection, number, args):
            if number < 2000 or args[0] not in names or connection.queue is not None:
                return None
            met.append(number)
            return deed(server, connection, args) if len(met) % 5 == 0 else None

        return mischief

    def test_stale_read(self):
        past = {}

        def stale(server, connection, number, args):
            if args[0] == b"GET" and number > 2000 and past.get(args[1]) and connection.queue is None:
                return bulk(past[args[1]])
            if number % 50 == 0:
                past.update(server.data)
            return None

        self.assertIn("no order", self.judge(stale, code=1))

    def test_read_overtakes_a_write_of_its_connection(self):
        """A GET returns the value from before the write that precedes it on its connection."""
        before = {}

        def overtake(server, connection, number, args):
            if connection.queue is not None or len(args) < 2:
                return None
            if args[0] in (b"SET", b"INCR"):
                before[connection] = (args[1], server.data.get(args[1]))
            elif args[0] == b"GET" and before.get(connection, (None,))[0] == args[1] and number > 1000:
                return bulk(before[connection][1])
            return None

        self.assertIn("GET", self.judge(overtake, code=1))

    def test_increment_lost(self):
        def lose(server, _connection, args):
            return b":%d\r\n" % (int(server.data.get(args[1], b"0")) + 1)

        self.judge(self.often([b"INCR"], lose), code=1)

    def test_increment_counted_double(self):
        def double(server, _connection, args):
            server.serve(args)

        self.judge(self.often([b"INCR", b"INCRBY"], double), code=1)

    def test_increment_answered_twice(self):
        def repeat(server, _connection, args):
            return b":%d\r\n" % int(server.data.get(args[1], b"7"))

        self.judge(self.often([b"INCR"], repeat), code=1)

    def test_lost_with_its_connection_and_done_twice(self):
        """A write of unknown outcome may have run once, but never twice."""
        def twice(server, _connection, args):
            for _ in range(2):
                server.serve(args)
            raise Hangup()

        self.judge(self.often([b"INCRBY"], twice), code=1)

    def test_refused_and_done(self):
        def lie(server, _connection, args):
            server.serve(args)
            return b"-BUSY too many wait\r\n"

        self.judge(self.often([b"INCRBY"], lie), code=1)

    def test_delete_that_did_nothing(self):
        def lie(server, _connection, args):
            return b":1\r\n" if args[1] in server.data else None

        self.judge(self.often([b"DEL"], lie), code=1)

    def test_condition_not_looked_at(self):
        def force(server, _connection, args):
            if b"NX" in args and args[1] in server.data:
                server.put(args[1], args[2])
                return b"+OK\r\n"
            return None

        self.judge(lambda server, connection, number, args:
                   force(server, connection, args)
                   if args[0] == b"SET" and connection.queue is None else None, code=1)

    def test_time_to_live_forgotten(self):
        def forget(server, connection, number, args):
            if args[0] == b"SET" and b"EX" in args and number > 1000 and connection.queue is None:
                return server.serve(args[:3])
            return None

        self.assertIn("TTL", self.judge(forget, code=1))

    def test_missing_answered_as_zero(self):
        def zero(server, connection, number, args):
            if args[0] == b"GET" and args[1] not in server.data and connection.queue is None:
                return bulk(b"0")
            return None

        self.judge(zero, code=1)

    def test_transaction_in_two_pieces(self):
        """Commands of a transaction see writes of other clients between them."""
        def tear(server, connection, number, args):
            if args[0] == b"EXEC" and number > 1000 and connection.queue and \
                    len(connection.queue) > 1 and len(connection.queue[0]) > 1:
                first = server.serve(connection.queue[0])
                server.add(connection.queue[0][1], 1000000)
                rest = b"".join(map(server.serve, connection.queue[1:]))
                count, connection.queue = len(connection.queue), None
                return b"*%d\r\n" % count + first + rest
            return None

        self.judge(tear, code=1)

    def test_watch_ignored(self):
        def ignore(_server, connection, _number, args):
            if args[0] == b"EXEC":
                connection.watched = {}

        self.judge(ignore, "--keys", 1, code=1)

    def test_bad_luck_is_no_mistake(self):
        """Connections that end before or after the command ran, unknown outcomes, refusals."""
        def trouble(server, connection, number, args):
            if number % 201 == 0:
                if number % 2:
                    server.serve_transaction(connection, args)
                raise Hangup()
            if connection.queue is not None or args[0] in (b"MULTI", b"WATCH", b"UNWATCH"):
                return None
            if number % 43 == 0:
                if number % 2:
                    server.serve(args)
                return b"-UNKNOWN the connection was lost before it answered\r\n"
            if number % 19 == 0:
                return (b"-BUSY too many wait\r\n", b"-CLUSTERDOWN nobody there; not sent\r\n",
                        b"-TRYAGAIN later\r\n")[number % 3] if args[0] != b"MSET" else None
            return None

        self.judge(trouble, "--window", 300, code=3)

    def test_lost_last_write(self):
        """Only the final read shows the lost write."""
        def lose(server, connection, number, args):
            return b"+OK\r\n" if args[0] == b"SET" and len(args) == 3 and number > 2000 and \
                args[1] in server.data and connection.queue is None else None

        self.judge(lose, "--connections", 1, "--pipeline", 1, code=1)

    def test_options(self):
        for args in (["--rate", "100"], ["--load"], ["--verify", "--keys", "2000"]):
            done = subprocess.run([heatsink_path(), "storm", "--command", "all", *args],
                                  capture_output=True, text=True, timeout=GUARD_S)
            self.assertEqual(done.returncode, 1)
            self.assertIn("--command all", done.stderr)


class Requests(unittest.TestCase):
    """--request repeats any command."""

    def test_the_commands_of_the_server(self):
        with Redis() as server:
            server.client().hset("big", mapping={f"field:{i}": i for i in range(1000)})
            result = run_json(self, server, "--request", " HGETALL  big ", "--count", 500)
            self.assertEqual((result["answered"], result["errors"]), (500, {}))
            self.assertEqual(calls(server, "hgetall"), 500)

    def test_is_called_by_its_name(self):
        """The output calls it a request, not a read or a write, because storm does not know what it does."""
        with Redis() as server:
            code, out, _ = run(server, "--request", "INCR n", "--count", 50, "--connections", 2)
            self.assertEqual(code, 0)
            self.assertIn(", request 'INCR n', 2 connections", out)
            self.assertRegex(out, r"(?m)^request +50 ")
            for word in ("reads", "writes", "keys", "uniform"):
                self.assertNotIn(word, out)
            result = run_json(self, server, "--request", "INCR n", "--count", 50)
            self.assertEqual((result["options"]["command"], result["options"]["request"]),
                             ("request", "INCR n"))
            self.assertEqual(result["all"]["requests"], 50)
            self.assertNotIn("reads", result)

    def test_different_replies_are_distinguished(self):
        """Storm skips parsing a long reply that equals the last one; here the replies differ."""
        with Redis() as server:
            server.client().rpush("list", *[f"element:{i}" for i in range(300)])
            for request in ("LRANGE list 0 -1", "LPOP list 3", "LRANGE list 0 -1"):
                result = run_json(self, server, "--request", request, "--count", 90, "--pipeline", 3,
                                  "--connections", 2)
                self.assertEqual((result["answered"], result["lost"]), (90, 0))

    def test_not_with_verify(self):
        done = subprocess.run([heatsink_path(), "storm", "--request", "PING", "--verify"],
                              capture_output=True, text=True, timeout=GUARD_S)
        self.assertEqual(done.returncode, 1)
        self.assertIn("--request", done.stderr)


if __name__ == "__main__":
    unittest.main()
