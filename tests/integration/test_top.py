"""Goal: heatsink top shows what the server said, on every terminal, and leaves the terminal as it was.

Method: the output of --once is compared byte for byte with the frames in golden/; a server that answers from a script
(lib/heat.py) always gives the same data. GOLDEN=write writes the frames again; then review the changes. The screen
runs in a pseudo terminal that the test can read and type at (lib/terminal.py). The last tests use a real server under
a real storm.
"""
import os
import re
import signal
import subprocess
import sys
import tempfile
import termios
import threading
import unicodedata
import unittest

import heat
import job_shell
from checks import wait_for
from fake import Hangup
from heat import FakeHeat
from servers import GUARD_S, Heatsink, Process, Redis, ReservedPort, heatsink_path
from terminal import Terminal

SANITIZERS = ("address",)  # the command has one thread

GOLDEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "golden")
DOWN, UP, HOME, END, PAGE_DOWN = "\x1bOB", "\x1bOA", "\x1bOH", "\x1bOF", "\x1b[6~"
OLD = re.compile(r"^stale, last answer ([1-9]\d*s|\d+m\d\ds) ago  [\d.]")  # a second or more


def command(port, *args):
    """top's command line, without a limit on the time of an answer unless the arguments set one."""
    patience = () if "--timeout" in args else ("--timeout", str(GUARD_S))
    return [heatsink_path(), "top", "--target", f"127.0.0.1:{port}", *patience, *map(str, args)]


def once(port, *args, **env):
    """Runs top --once; returns exit code, frame and standard error."""
    full = {**os.environ, "LC_ALL": "C.UTF-8", **env}
    if "COLUMNS" not in env:
        full.pop("COLUMNS", None)
    done = subprocess.run(command(port, "--once", *args), capture_output=True, timeout=GUARD_S,
                          env=full, check=False)
    return done.returncode, done.stdout, done.stderr.decode()


def columns(line):
    """The number of terminal columns of a line."""
    return sum(2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in line)


class Frames(unittest.TestCase):
    """--once against the golden frames, in both protocol versions."""

    def check(self, name, scene, *args, **env):
        frames = []
        for resp in (3, 2):
            with FakeHeat(scene, resp=resp) as server:
                code, out, err = once(server.port, *args, **env)
                self.assertEqual((code, err), (0, ""))
                # The port has five digits like its replacement, so columns stay in place.
                frames.append(out.replace(b"127.0.0.1:%d" % server.port, b"127.0.0.1:00000"))
        self.assertEqual(frames[0], frames[1], "RESP3 and RESP2 look different")
        for line in frames[0].decode().splitlines():
            self.assertLessEqual(columns(line), int(env.get("COLUMNS", 80)))
            self.assertEqual(line, line.rstrip())
        path = os.path.join(GOLDEN, name + ".txt")
        if os.environ.get("GOLDEN") == "write":
            with open(path, "wb") as file:
                file.write(frames[0])
        with open(path, "rb") as file:
            self.assertEqual(frames[0].decode(), file.read().decode())

    def test_calm_fleet(self):
        self.check("top-calm", heat.calm())

    def test_one_hot_key(self):
        self.check("top-hot-key", heat.hot_key())

    def test_common_width(self):
        """A width of 120 columns shows the address and the CPU of a server."""
        self.check("top-120-columns", heat.hot_key(), COLUMNS="120")

    def test_many_partitions(self):
        self.check("top-many-partitions", heat.many_partitions())

    def test_odd_keys(self):
        self.check("top-odd-keys", heat.odd_keys())

    def test_odd_keys_without_unicode(self):
        self.check("top-odd-keys-ascii", heat.odd_keys(), LC_ALL="C")

    def test_empty_server(self):
        self.check("top-empty", heat.empty())

    def test_narrow(self):
        self.check("top-narrow", heat.hot_key(), COLUMNS="40")

    def test_as_narrow_as_it_gets(self):
        self.check("top-narrowest", heat.odd_keys(), COLUMNS="20")

    def test_wide(self):
        self.check("top-wide", heat.hot_key(), COLUMNS="200")

    def test_prefixes(self):
        self.check("top-prefixes", heat.hot_key(), "--show", "prefixes", "--prefix", "product:")

    def test_slots(self):
        self.check("top-slots", heat.hot_key(), "--show", "slots", "--window", "long")

    def test_sorted_and_filtered(self):
        self.check("top-by-bytes", heat.hot_key(), "--sort", "bytes", "--count", "3")
        self.check("top-filtered", heat.hot_key(), "--prefix", "product:", "--sort", "latency")
        self.check("top-filtered-away", heat.hot_key(), "--prefix", "nobody\n")

    def test_a_server_of_another_version(self):
        self.check("top-sparse", heat.sparse())


class Requests(unittest.TestCase):
    """The requests that top sends, and the forms of replies that it accepts."""

    def asked(self, *args):
        with FakeHeat(heat.hot_key()) as server:
            self.assertEqual(once(server.port, *args)[0], 0)
            return [b" ".join(words).decode() for words in server.asked]

    def test_requests_sent(self):
        self.assertEqual(self.asked(), [
            "HELLO 3", "INFO server", "HEAT PARTITIONS", "HEAT TOP COUNT 10 BY ops",
            "HEAT prefixes COUNT 5 BY ops"])
        self.assertEqual(self.asked("--password", "pw", "--window=short", "--sort", "writes",
                                    "--prefix", "a b", "--count", "7"), [
            "AUTH pw", "HELLO 3", "INFO server", "HEAT PARTITIONS WINDOW short",
            "HEAT TOP COUNT 7 BY writes WINDOW short PREFIX a b",
            "HEAT prefixes COUNT 5 BY writes WINDOW short"])
        self.assertEqual(self.asked("--show", "slots")[3], "HEAT slots COUNT 10 BY ops")
        # top filters prefixes itself, so it requests all of them.
        self.assertEqual(self.asked("--show", "prefixes", "--prefix", "x")[3:],
                         ["HEAT prefixes COUNT 1000 BY ops"])

    def test_password(self):
        with FakeHeat(heat.calm(), password="open sesame") as server:
            self.assertEqual(once(server.port, "--password", "open sesame")[0], 0)
        with FakeHeat(heat.calm(), password="pw", resp=2) as server:
            self.assertEqual(once(server.port, "--password", "pw")[0], 0)

    def test_password_of_the_environment_and_of_a_file(self):
        with FakeHeat(heat.calm(), password="open sesame") as server, \
                tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "password")
            with open(path, "w", encoding="utf-8") as file:
                file.write("open sesame\nnot this line\n")
            self.assertEqual(once(server.port, HEATSINK_PASSWORD="open sesame")[0], 0)
            self.assertEqual(once(server.port, "--password-file", path)[0], 0)
            # Flags have precedence over the environment.
            self.assertEqual(once(server.port, "--password-file", path, HEATSINK_PASSWORD="no")[0],
                             0)
            self.assertEqual(once(server.port, "--password", "open sesame",
                                  HEATSINK_PASSWORD="no")[0], 0)
            code, _, err = once(server.port, "--password-file", path, "--password", "x")
            self.assertEqual(code, 1)
            self.assertIn("either --password or --password-file", err)
            # The server refuses the longest allowed password, top sends it.
            for end in ("", "\n"):
                with open(path, "w", encoding="utf-8") as file:
                    file.write("x" * 512 + end)
                self.assertIn("WRONGPASS", once(server.port, "--password-file", path)[2])
            with open(path, "w", encoding="utf-8") as file:
                file.write("x" * 513)
            for wrong, why in ((path, "longer than a password"), (folder, "Is a directory"),
                               (path + ".no", "No such file"), ("/dev/null", "is empty")):
                code, _, err = once(server.port, "--password-file", wrong)
                self.assertEqual(code, 1)
                self.assertIn(f"--password-file {wrong}: ", err)
                self.assertIn(why, err)
            code, _, err = once(server.port, HEATSINK_PASSWORD="x" * 513)
            self.assertEqual(code, 1)
            self.assertIn("HEATSINK_PASSWORD: a password may have at most 512 bytes", err)

    def test_answers_byte_by_byte(self):
        def drip(server, connection, _number, args):
            for byte in server.reply(connection, args):
                connection.wfile.write(bytes([byte]))
                connection.wfile.flush()
            return b""
        with FakeHeat(heat.calm()) as whole, FakeHeat(heat.calm(), mischief=drip) as dripping:
            expected = once(whole.port)[1].splitlines()[1:]
            self.assertEqual(once(dripping.port)[1].splitlines()[1:], expected)

    def test_pushes_and_attributes_are_passed_over(self):
        def chatty(server, connection, _number, args):
            reply = server.reply(connection, args)
            if args[0] != b"HEAT":
                return None
            return (b">2\r\n$7\r\nmessage\r\n*1\r\n:1\r\n" + b"|1\r\n+ttl\r\n:5\r\n" + reply)
        with FakeHeat(heat.calm()) as plain, FakeHeat(heat.calm(), mischief=chatty) as server:
            expected = once(plain.port)[1].splitlines()[1:]
            self.assertEqual(once(server.port)[1].splitlines()[1:], expected)

    def test_columns_of_the_terminal(self):
        with FakeHeat(heat.hot_key()) as server:
            for env, wide in (({}, True), ({"COLUMNS": "80"}, False)):
                cleared = {**env, **({} if env else {"COLUMNS": ""})}
                with Terminal(command(server.port, "--once"), cols=160, env=cleared) as terminal:
                    self.assertEqual(terminal.end(), 0)
                    self.assertEqual("ADDRESS" in terminal.seen, wide)


class Failures(unittest.TestCase):
    """--once without an answer prints one line that says what to do, and exits with 1."""

    def check(self, port, *words, args=()):
        code, out, err = once(port, *args)
        self.assertEqual((code, out), (1, b""))
        self.assertTrue(err.startswith("heatsink top: "), err)
        self.assertEqual(err.count("\n"), 1, err)
        for word in words:
            self.assertIn(word, err)

    def test_server_unreachable(self):
        port = ReservedPort()
        self.addCleanup(port.release)
        self.check(port.number, f"127.0.0.1:{port.number}", "connection refused", "--target")

    def test_no_such_host(self):
        name = "x" * 100  # too long for a host name, so no resolver is asked
        done = subprocess.run([heatsink_path(), "top", "--once", "--target", name + ":1"],
                              capture_output=True, text=True, timeout=GUARD_S, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn(name, done.stderr)

    def test_password_wanted(self):
        with FakeHeat(heat.calm(), password="pw") as server:
            self.check(server.port, "requires a password", "--password")
            self.check(server.port, "WRONGPASS", "--password", args=("--password", "no"))

    def test_not_heatsink(self):
        with Redis() as server:
            self.check(server.port, "is not a heatsink server", "HEAT", "--target")
        with FakeHeat(heat.calm(), heat=False, resp=2) as server:
            self.check(server.port, "is not a heatsink server")

    def test_another_error(self):
        with FakeHeat(heat.calm(), mischief=lambda *_: b"-LOADING wait\x1b[2J a bit\r\n") as server:
            self.check(server.port, r"LOADING wait\x1b[2J a bit")

    def test_no_answer(self):
        done = threading.Event()
        self.addCleanup(done.set)

        def hang(*_):
            done.wait()
            raise Hangup
        with FakeHeat(heat.calm(), mischief=hang) as server:
            self.check(server.port, "no answer", "0.1 s", args=("--timeout", "0.1"))
            done.set()

    def test_lost(self):
        def drop(_server, _connection, number, _args):
            if number == 3:
                raise Hangup
        with FakeHeat(heat.calm(), mischief=drop) as server:
            self.check(server.port, "lost the connection")

    def test_no_redis_at_all(self):
        with FakeHeat(heat.calm(), mischief=lambda *_: b"HTTP/1.1 400 Bad\r\n\r\n") as server:
            self.check(server.port, "--target")

    def test_rows_of_another_shape(self):
        for reply in (b":1\r\n", b"*1\r\n:1\r\n", b"*1\r\n*1\r\n+key\r\n", b"+OK\r\n"):
            def odd(_server, _connection, _number, args, reply=reply):
                return reply if args[:2] == [b"HEAT", b"TOP"] else None
            with FakeHeat(heat.calm(), mischief=odd) as server:
                self.check(server.port, "this version cannot read")

    def test_an_answer_without_end(self):
        def endless(_server, _connection, _number, args):
            return b"$400000000\r\n" + b"x" * (17 << 20) if args[0] == b"INFO" else None
        with FakeHeat(heat.calm(), mischief=endless) as server:
            self.check(server.port, "16 MB")

    def test_bad_words(self):
        for words in (["--sort", "size"], ["--window", "wide"], ["--interval", "0"],
                      ["--interval", "x"], ["--count", "1001"], ["--target", "host"],
                      ["--colour"], ["--once=yes"], ["--prefix", "x" * 257]):
            self.check(1, words[0].split("=")[0], args=words)

    def test_help(self):
        done = subprocess.run([heatsink_path(), "top", "--help"], capture_output=True, text=True,
                              timeout=GUARD_S, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        for flag in "target user password password-file tls tls-ca-cert-file tls-skip-verify once interval window sort show prefix count timeout".split():
            self.assertIn("--" + flag, done.stdout)
        self.assertLessEqual(max(map(len, done.stdout.splitlines())), 80)

    def test_not_a_terminal(self):
        with FakeHeat(heat.calm()) as server:
            done = subprocess.run(command(server.port), capture_output=True, text=True,
                                  stdin=subprocess.DEVNULL, timeout=GUARD_S, check=False)
            self.assertEqual((done.returncode, done.stdout), (1, ""))
            self.assertIn("--once", done.stderr)
            with Terminal(command(server.port), env={"TERM": "nonsense"}) as terminal:
                self.assertEqual(terminal.end(), 1)
                self.assertIn("nonsense", terminal.text())
                self.assertEqual(terminal.restored(), [])

    def test_a_terminal_whose_cursor_cannot_be_moved(self):
        with FakeHeat(heat.calm()) as server:
            with Terminal(command(server.port), env={"TERM": "dumb"}) as terminal:
                self.assertEqual(terminal.end(), 1)
                self.assertRegex(terminal.seen, r"^heatsink top: [^\x1b]*'dumb' cannot move its "
                                 r"cursor[^\x1b]*--once\s+$")
                self.assertEqual(terminal.restored(), [])
            with Terminal(command(server.port, "--once"), env={"TERM": "dumb"}) as terminal:
                self.assertEqual(terminal.end(), 0)
                self.assertIn("user:100", terminal.text())


class Live(unittest.TestCase):
    """The screen in a pseudo terminal of 80x24."""

    def watch(self, server, *args, interval="0.1", **options):
        port = server if isinstance(server, int) else server.port
        terminal = Terminal(command(port, "--interval", interval, *args), **options)
        self.addCleanup(terminal.__exit__)
        return terminal

    def quit(self, terminal):
        terminal.type("q")
        self.assertEqual(terminal.end(), 0)
        self.assertEqual(terminal.restored(), [])

    def test_paints_and_quits(self):
        with FakeHeat(heat.hot_key()) as server:
            terminal = self.watch(server)
            terminal.wait_text("product:8841:title", "1/10")
            lines = terminal.text().splitlines()
            self.assertEqual(len(lines), 24)
            for part in (f"127.0.0.1:{server.port}", "heatsink 0.1.0", "up 3d04h", "every 0.1s"):
                self.assertIn(part, lines[0])
            self.assertIn("1.31M ops/s", lines[1])
            # The screen has the same rows as --once.
            with open(os.path.join(GOLDEN, "top-hot-key.txt"), encoding="utf-8") as file:
                golden = file.read().splitlines()
            for line in golden[3:13] + golden[14:24]:
                self.assertIn(line, lines)
            self.assertIn(("?", 1049), terminal.modes)
            self.assertIn(31, terminal.styles(6))  # the hot partition is red
            self.assertIn(32, terminal.styles(3))
            self.quit(terminal)

    def test_odd_keys_hurt_no_terminal(self):
        with FakeHeat(heat.odd_keys()) as server:
            terminal = self.watch(server)
            terminal.wait_text("leading and trailing", "1/11")
            with open(os.path.join(GOLDEN, "top-odd-keys.txt"), encoding="utf-8") as file:
                golden = file.read().splitlines()
            for line in golden[3:6] + golden[8:]:
                self.assertIn(line, terminal.text().splitlines())
            self.quit(terminal)

    def test_without_unicode_and_colour(self):
        with FakeHeat(heat.odd_keys()) as server:
            terminal = self.watch(server, env={"LC_ALL": "C", "NO_COLOR": "1"})
            terminal.wait_text("leading and trailing", "1/11")
            self.assertTrue(terminal.seen.isascii())
            self.assertIn(r"emoji\xf0\x9f\x98\x80:x", terminal.text())
            for row in range(24):
                self.assertFalse(terminal.styles(row) & set(range(30, 50)))
            self.quit(terminal)
        with FakeHeat(heat.hot_key()) as server:
            terminal = self.watch(server, env={"TERM": "vt100"})
            terminal.wait_text("product:8841:title")
            self.quit(terminal)

    def test_sort_and_tables_and_window(self):
        with FakeHeat(heat.hot_key()) as server:
            terminal = self.watch(server, interval="3600")
            terminal.wait_text("product:8841:stock")
            for key, word, first in (("r", "reads", "product:8841:title"),
                                     ("b", "bytes", "report:2024:export"),
                                     ("l", "latency", "report:2024:export"),
                                     ("w", "writes", "product:8841:stock"),
                                     ("o", "ops", "product:8841:stock")):
                terminal.type(key)
                terminal.wait_text(f"sort {word}")
                server.wait_asked("HEAT", "TOP", "COUNT", "100", "BY", word)
                terminal.wait(lambda first=first: any(
                    line.startswith("KEY") and after.startswith(first) for line, after in
                    zip(terminal.text().splitlines(), terminal.text().splitlines()[1:])))
            terminal.type("p")
            terminal.wait_text("PREFIX  ")
            terminal.type("s")
            terminal.wait(lambda: re.search(r"^SLOT .*\n7419 ", terminal.text(), re.M))
            terminal.type("k")
            terminal.wait_text("\nKEY  ")
            for key, word in (("W", "short"), ("\t", "long"), ("W", "auto")):
                since = len(server.asked)
                terminal.type(key)
                terminal.wait_text(f"window {word}")
                more = ("WINDOW", word) if word != "auto" else ()
                server.wait_asked("HEAT", "PARTITIONS", *more, since=since)
            self.quit(terminal)

    def test_pause(self):
        with FakeHeat(heat.hot_key()) as server:
            terminal = self.watch(server, interval="3600")
            terminal.wait_text("product:8841:stock")
            terminal.type(" ")
            terminal.wait_text("PAUSED")
            asked = len(server.asked)
            server.scene = heat.calm()
            # A shorter interval would send a request at once; sorting uses the data at hand.
            terminal.type("-")
            terminal.wait_text("every 300s")
            terminal.type("b")
            terminal.wait(lambda: re.search(r"^KEY .*\nreport:2024:export ", terminal.text(), re.M))
            self.assertIn("PAUSED", terminal.text())
            terminal.type("h")
            terminal.wait_text("any key goes back")
            self.assertEqual(len(server.asked), asked)
            terminal.type("x")
            terminal.wait_text("report:2024:export")
            terminal.type(" ")
            terminal.wait_text("user:103", gone="PAUSED")
            self.quit(terminal)

    def test_goes_on_by_itself(self):
        with FakeHeat(heat.hot_key()) as server:
            terminal = self.watch(server)
            terminal.wait_text("product:8841:stock")
            server.scene = heat.calm()
            terminal.wait_text("user:103", gone="product")
            self.quit(terminal)

    def test_goes_on_after_slow_painting(self):
        """Ctrl-S stops the terminal in the middle of a frame; when Ctrl-Q resumes it, the next request is overdue."""
        with FakeHeat(heat.hot_key()) as server:
            terminal = self.watch(server)
            terminal.wait_text("product:8841:stock")
            terminal.type("\x13")
            server.scene = heat.calm()
            server.wait_silent(2)  # top is blocked in painting: otherwise it would have sent ten requests
            terminal.type("\x11")
            terminal.wait_text("user:103", gone="product")
            server.scene = heat.hot_key()
            terminal.wait_text("product:8841:stock")
            self.quit(terminal)

    def test_filter(self):
        with FakeHeat(heat.hot_key()) as server:
            terminal = self.watch(server, interval="3600")
            terminal.wait_text("product:8841:stock")
            terminal.type("/")
            terminal.wait_text("starts with:")
            terminal.type("usex")
            terminal.wait_text("starts with: usex")
            terminal.type("\x7f")
            terminal.type("rü\x7f:")  # in the filter line, command keys are plain letters; ü is one letter
            terminal.wait_text("starts with: user:")
            self.assertIn(("?", 25), terminal.modes)  # the cursor is visible while a filter is typed
            terminal.type("\r")
            terminal.wait_text("only user:")
            server.wait_asked("HEAT", "TOP", "COUNT", "100", "BY", "ops", "PREFIX", "user:")
            terminal.wait_text("user:104", gone="product:8841:title")
            self.assertNotIn(("?", 25), terminal.modes)
            terminal.type("\x1b")
            terminal.wait_text("product:8841:title", gone="only user:")
            terminal.type("/nobody\r")
            terminal.wait_text("no hot keys start with nobody")
            terminal.type("/")
            terminal.wait_text("starts with: nobody")
            terminal.type("\x1b")
            terminal.wait_text("product:8841:title")
            self.quit(terminal)

    def test_help(self):
        with FakeHeat(heat.calm()) as server:
            terminal = self.watch(server)
            for key in ("h", "?"):
                terminal.wait_text("user:100", gone="any key goes back")
                terminal.type(key)
                terminal.wait_text("any key goes back",
                                   "sort by ops, reads, writes, bytes, latency")
                terminal.type("q")
            terminal.wait_text("user:100")
            self.quit(terminal)

    def selected(self, terminal):
        """The selected row: the one in reverse video below the headings."""
        lines = terminal.text().splitlines()
        head = next(i for i, line in enumerate(lines) if line.startswith("KEY"))
        rows = [i for i in range(head + 1, 23) if 7 in terminal.styles(i)]
        return lines[rows[0]].split()[0] if len(rows) == 1 else None

    def test_moving(self):
        keys = [heat.key(b"key:%03d:%s" % (i, b"x" * 40), 1000 - i, part=0) for i in range(100)]
        scene = heat.scene([heat.partition(0, 5000)], keys)
        with FakeHeat(scene) as server:
            terminal = self.watch(server, interval="3600")
            terminal.wait_text("1/100")
            for typed, place, number in ((DOWN, "2/100", 1), (DOWN + DOWN, "4/100", 3),
                                         (UP, "3/100", 2), (END, "100/100", 99),
                                         (HOME, "1/100", 0), ("\x1b[B", "2/100", 1)):
                terminal.type(typed)
                terminal.wait_text(" " + place)
                # The last line shows the whole key.
                self.assertIn(f"key:{number:03}:" + "x" * 40, terminal.text().splitlines()[-1])
                self.assertTrue(self.selected(terminal).startswith(f"key:{number:03}:x"))
            terminal.type(PAGE_DOWN)
            terminal.wait(lambda: self.selected(terminal) is not None
                          and not re.search(r" 2/100", terminal.text()))
            self.quit(terminal)

    def test_unknown_key_codes_do_nothing(self):
        with FakeHeat(heat.calm()) as server:
            terminal = self.watch(server, interval="3600")
            terminal.wait_text("user:100")
            terminal.type("\x1b[1;5q")  # would quit if top took the letter q of this sequence for a key
            terminal.type("w")
            terminal.wait_text("sort writes")
            self.quit(terminal)

    def test_interval(self):
        with FakeHeat(heat.calm()) as server:
            terminal = self.watch(server, interval="1")
            terminal.wait_text("every 1s")
            for key, text in (("+", "every 2s"), ("+", "every 5s"), ("-", "every 2s"),
                              ("-", "every 1s"), ("-", "every 0.5s")):
                terminal.type(key)
                terminal.wait_text(text)
            self.quit(terminal)

    def test_resize(self):
        with FakeHeat(heat.many_partitions()) as server:
            terminal = self.watch(server, interval="3600")
            terminal.wait_text("more partitions")
            self.assertEqual(len(terminal.text().splitlines()), 24)
            terminal.change_size(40, 132)
            terminal.wait_text("ADDRESS")
            terminal.wait(lambda: "q quit" in terminal.text().splitlines()[-1])
            self.assertEqual(len(terminal.text().splitlines()), 40)
            for rows, cols in ((10, 40), (5, 20), (2, 12), (1, 1), (3, 500), (24, 80)):
                terminal.change_size(rows, cols)
                terminal.type("hx\x0c")
                terminal.wait(lambda: terminal.text().strip() or terminal.cols == 1)
            terminal.wait(lambda: "q quit" in terminal.text().splitlines()[-1]
                          and "\nsession:9999 " in terminal.text())
            self.quit(terminal)

    def test_signals_give_the_terminal_back(self):
        with FakeHeat(heat.calm()) as server:
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
                with self.subTest(signal=number):
                    terminal = self.watch(server)
                    terminal.wait_text("user:100")
                    if number == signal.SIGINT:
                        terminal.type("\x03")
                    else:
                        terminal.child.send_signal(number)
                    self.assertEqual(terminal.end(), 128 + number)
                    self.assertEqual(terminal.restored(), [])

    def test_the_window_is_closed(self):
        with FakeHeat(heat.calm()) as server:
            terminal = self.watch(server)
            terminal.wait_text("user:100")
            terminal.hang_up()
            # top may notice the closed terminal before SIGHUP arrives.
            self.assertIn(terminal.child.wait(GUARD_S), (0, 128 + signal.SIGHUP))

    def stop_and_continue(self, server, *options, keys=""):
        """Types the keys, if any, at the first frame; waits until top stops; continues and quits."""
        terminal = Terminal([sys.executable, job_shell.__file__, *options,
                             *command(server.port, "--interval", "0.1")])
        self.addCleanup(terminal.__exit__)
        if keys:
            terminal.wait_text("user:100")
            terminal.type(keys)
        terminal.wait_text(f"job stopped by {signal.SIGTSTP:d}")
        self.assertIn("\x1b[?1049h", terminal.seen)
        self.assertEqual(terminal.restored(), [])
        flags = termios.tcgetattr(terminal.slave)[3]
        self.assertEqual(flags & termios.ECHO, termios.ECHO)
        self.assertEqual(flags & termios.ICANON, termios.ICANON)
        terminal.change_size(24, 132)
        terminal.type("\n")
        terminal.wait_text("user:100", "ADDRESS")
        self.assertIn(("?", 1049), terminal.modes)
        self.quit(terminal)

    def test_stopped_and_continued(self):
        with FakeHeat(heat.calm()) as server:
            self.stop_and_continue(server, keys="\x1a")  # Ctrl-Z

    def test_stopped_before_the_first_frame(self):
        """ncurses must not discard a Ctrl-Z that comes between top's start and its first frame."""
        with FakeHeat(heat.calm()) as server:
            self.stop_and_continue(server, "--pending")

    def test_a_stop_that_cannot_be(self):
        """The kernel does not stop a session leader, because no process could continue it."""
        with FakeHeat(heat.calm()) as server:
            terminal = self.watch(server)
            terminal.wait_text("user:100")
            terminal.child.send_signal(signal.SIGTSTP)
            terminal.wait(lambda: terminal.seen.count("\x1b[?1049h") == 2)
            terminal.wait_text("user:100")
            self.quit(terminal)

    def test_a_server_that_hangs_holds_up_no_key(self):
        done = threading.Event()
        self.addCleanup(done.set)

        def hang(_server, _connection, _number, args):
            if args[0] == b"HEAT":
                done.wait()
        with FakeHeat(heat.calm(), mischief=hang) as server:
            terminal = self.watch(server)
            terminal.wait_text("waiting for the first answer")
            terminal.type("h")
            terminal.wait_text("any key goes back")
            terminal.type("h")
            terminal.wait_text("still waiting")
            done.set()
            terminal.wait_text("user:100")
            self.quit(terminal)

    def test_connects_by_itself(self):
        port = ReservedPort()
        self.addCleanup(port.release)
        terminal = self.watch(port.number)
        terminal.wait_text("connection refused")
        terminal.wait_text("trying again")
        with FakeHeat(heat.calm(), port=port.number) as server:
            terminal.wait_text("user:100", gone="trying again")
            server.scene = heat.hot_key()
            server.hang_up()
            terminal.wait_text("product:8841:stock")
        server.hang_up()
        # The last data stays on the screen, with its age.
        terminal.wait_text("trying again", "product:8841:stock")
        terminal.wait(lambda: OLD.search(terminal.text().splitlines()[1]))
        self.assertIn("1.31M ops/s", terminal.text())
        with FakeHeat(heat.calm(), port=port.number):
            terminal.wait_text("user:103", gone="stale")
            self.quit(terminal)

    def test_old_figures_grow_older_between_two_looks(self):
        with FakeHeat(heat.calm()) as server:
            terminal = self.watch(server, interval="3600")
            terminal.wait_text("user:100", gone="stale")
        server.hang_up()
        terminal.type("w")  # a request that finds no server; the next one is due in an hour
        terminal.wait_text("trying again")
        terminal.wait(lambda: OLD.search(terminal.text().splitlines()[1]))
        self.quit(terminal)

    def test_failure_is_shown(self):
        with Redis() as server:
            terminal = self.watch(server)
            terminal.wait_text("is not a heatsink server")
            terminal.wait_text("trying again")
            self.quit(terminal)
        with FakeHeat(heat.calm(), password="pw") as server:
            terminal = self.watch(server)
            terminal.wait_text("requires a password")
            self.quit(terminal)


class RealServer(unittest.TestCase):
    """A real heatsink under a storm of which one key gets most."""

    def is_on_top(self, code, out, err):
        self.assertEqual((code, err), (0, ""))
        self.assertRegex(out.decode(), r"(?m)^median ")
        return re.search(r"(?m)^KEY .*\nkey:000000000000 ", out.decode())

    def test_the_viral_key_is_on_top(self):
        with Heatsink("--sync", "off") as server:
            storm = Process([heatsink_path(), "storm", "--target", f"127.0.0.1:{server.port}",
                             "--shape", "viral:0.6", "--keys", "1000", "--command", "set",
                             "--duration", "10m"])
            try:
                terminal = Terminal(command(server.port, "--interval", "0.1"))
                self.addCleanup(terminal.__exit__)
                terminal.wait(lambda: re.search(r"^KEY .*\nkey:000000000000 .* 0:100 ",
                                                terminal.text(), re.M))
                terminal.wait_text("prefixes  key:")
                wait_for(self, "the same is printed",  # repeated, because the rates of a stopped storm decay
                         lambda: self.is_on_top(*once(server.port)))
                terminal.type("q")
                self.assertEqual(terminal.end(), 0)
                self.assertEqual(terminal.restored(), [])
            finally:
                storm.signal(signal.SIGTERM)
                storm.wait()


if __name__ == "__main__":
    unittest.main()
