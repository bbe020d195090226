"""Goal: every block of README.md works as a reader would paste it, in the order of the page, and prints what the page
promises.

Method: the blocks run line by line in a copy of the tree. Behind "#=>" stands the output of the line; the word N in it
is a number above 0. The servers that the page assumes exist: a redis-server, a Cluster of three masters with a replica
each. Only this is changed:

  make run            finds the objects compiled, and links them. The tests are built by the same rules, in a clean
                      checkout from nothing
  ports 6379 … 7001   become ports of this test; `make run` is told its port with ARGS
  servers             run in the background; SIGTERM ends them at the end
  make test, bench    run with --dry-run: this test is a part of the first, and the second takes minutes
"""
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import unittest
from xml.etree import ElementTree

from cluster import Cluster
from servers import ENGINE_MET, GUARD_S, Process, Redis, ReservedPort, note

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
INSTRUMENTED = re.search("-(address|undefined|thread)$", os.environ.get("HEATSINK_BUILD", ""))

RUN_ONCE = True

PAGES = ("README.md", "docs/PATTERNS.md")
PORT = re.compile(r"\b(6379|638\d|6390|700\d|8380)\b")
SERVES = re.compile(r"make run$|build/heatsink serve (?!.*--(help|check-config))")
DRY = {"make test": r"tools/run-tests", "make bench": r"bench/run\.py"}
LOAD = re.compile(r"build/heatsink storm .*--duration")
LOADED = re.compile(r"redis-cli .* (HEAT|INFO) ")  # shows the effect of the load before it
ERROR = re.compile(r"(?m)^(\(error\) )?(ERR|CLUSTERDOWN|NO[A-Z]+|WRONG[A-Z]+)\b")


def read(name):
    with open(os.path.join(ROOT, name), encoding="utf-8") as file:
        return file.read()


def blocks(markdown):
    """Each fenced block: its language, and its lines as pairs of a command and the promised output, or ''."""
    for language, block in re.findall(r"^```([^\n]*)\n(.*?)^```$", markdown, re.M | re.S):
        lines = []
        for line in block.replace("\\\n", " ").splitlines():
            command, _, promise = line.partition("#=>")
            if command.strip():
                lines.append((command.strip(), promise.strip()))
        yield language, lines


def promised(promise):
    """The promised output as a regular expression."""
    return r"\s+".join(re.escape(word) if word != "N" else r"[1-9]\d*"
                       for word in promise.split()).replace(":N", r":[1-9]\d*")


class Extraction(unittest.TestCase):
    def test_lines_and_promises(self):
        text = "a\n```sh\nmake run\n\nget a \\\n  b   #=> 1 2\n```\n```\nno\n```\n```sh\nlast\n```\n"
        self.assertEqual(list(blocks(text)),
                         [("sh", [("make run", ""), ("get a    b", "1 2")]), ("", [("no", "")]),
                          ("sh", [("last", "")])])

    def test_promises(self):
        for promise, said in (("OK", "OK\n"), ("a N", "a\t17"), ("b:N", "b:3\r\n"), ("a b", "a  b")):
            self.assertRegex(said, promised(promise))
        for promise, said in (("a N", "a\t0"), ("b:N", "b:0"), ("x.y", "xzy")):
            self.assertNotRegex(said, promised(promise))

    def test_every_line_can_be_pasted_and_shows_something(self):
        for page in PAGES:
            for language, lines in blocks(read(page)):
                self.assertIn(language, ("sh", "text"), lines)
                for command, promise in lines if language == "sh" else ():
                    self.assertTrue(promise, f"{command}: say what a reader sees: #=> text")
                    self.assertNotRegex(command, "…|\\.\\.\\.")


class Links(unittest.TestCase):
    def test_every_linked_file_is_there(self):
        for page in ("README.md", "CONTRIBUTING.md", "docs/ACL.md", "docs/COMMANDS.md",
                     "docs/CONTRACTS.md", "docs/HEAT.md", "docs/METRICS.md", "docs/PATTERNS.md",
                     "docs/GLOSSARY.md", "docs/CACHING.md", "docs/FOLDING.md", "docs/COPIES.md",
                     "docs/ENGINES.md", "docs/ARCHITECTURE.md", "docs/SIMULATOR.md"):
            for target in re.findall(r"\]\(([^)#:]+)\)", read(page)):
                path = os.path.join(ROOT, os.path.dirname(page), target)
                self.assertTrue(os.path.exists(path), f"{page} links to {target}")

    def test_every_named_source_is_there(self):
        """A page may name src/core/dispatch.c as `core/dispatch.c`."""
        for page in ("CONTRIBUTING.md", "docs/ARCHITECTURE.md", "docs/FOLDING.md"):
            named = set(re.findall(r"`((?:[a-z_]+/)+[a-z_]+\.[ch])`", read(page)))
            missing = [path for path in named
                       if not any(os.path.exists(os.path.join(ROOT, folder, path)) for folder in ("", "src"))]
            self.assertEqual(missing, [], f"{page} names files that are not there")

    def test_the_example_stage_is_the_one_that_runs(self):
        source = read("tests/unit/test_stages_example.c")
        example = re.search(r"/\* example begins \*/\n(.*?)/\* example ends \*/", source, re.S).group(1)
        self.assertIn(f"```c\n{example}```", read("CONTRIBUTING.md"))

    def test_pages_match_the_tables(self):
        for name, page, known in (("commands", "docs/COMMANDS.md", "| `GET key` |"),
                                  ("options", "docs/heatsink.conf", "\nsync always\n"),
                                  ("heat", "docs/HEAT.md", "| `ops_low` | integer |"),
                                  ("contracts", "docs/CONTRACTS.md", "| `stale` | `100ms` |"),
                                  ("metrics", "docs/METRICS.md", "| `heatsink_build_info` |")):
            made = subprocess.run([os.path.join(ROOT, "tools/make-docs"), name], check=True,
                                  capture_output=True, text=True).stdout
            self.assertIn(known, made)
            self.assertEqual(made, read(page), "run make docs")


class Picture(unittest.TestCase):
    """The text of docs/heatsink.svg fits its boxes, also in a wide font."""

    EM = 0.6  # mean width of a letter, as a part of the font size
    SIZES = {"big": 17, "small": 12, None: 14}

    def read(self):
        svg = ElementTree.fromstring(read("docs/heatsink.svg"))
        rects = [(*(float(rect.get(name, 0)) for name in ("x", "y", "width", "height")),
                  rect.get("class")) for rect in svg.iter("{http://www.w3.org/2000/svg}rect")]
        for text in svg.iter("{http://www.w3.org/2000/svg}text"):
            x, y = float(text.get("x")), float(text.get("y"))
            around = [rect for rect in rects
                      if rect[0] <= x <= rect[0] + rect[2] and rect[1] <= y <= rect[1] + rect[3]]
            wide = len(text.text) * self.SIZES[text.get("class")] * self.EM
            yield text.text, x, wide, min(around, key=lambda rect: rect[2] * rect[3])

    def test_text_fits_its_box(self):
        for text, x, wide, (left, _, width, _, _) in self.read():
            self.assertGreater(x - wide / 2, left, text)
            self.assertLess(x + wide / 2, left + width, text)

    def test_built_folders_are_not_drawn_as_planned(self):
        planned = [text for text, _, _, rect in self.read() if rect[4] == "later"]
        self.assertIn("planned: split counters, admission", planned)
        for text in planned:
            self.assertNotRegex(text, "fold|cache|contract|rule")


def left_out(path, names):
    """Entries of a folder that are not copied (for shutil.copytree)."""
    if path == ROOT:
        return {"data", ".git"} & set(names)
    return set(names) - {"obj", "flags"} if path == os.path.join(ROOT, "build") else set()


class Commands(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="heatsink-readme-")
        self.addCleanup(folder.cleanup)
        self.tree = os.path.join(folder.name, "heatsink")
        shutil.copytree(ROOT, self.tree, symlinks=True, ignore=left_out)
        self.servers, self.load = [], None
        redis = self.enterContext(Redis())
        cluster = self.enterContext(Cluster(masters=3, replicas=1))
        self.ports = {"6379": redis.port, "7000": cluster.nodes[0].port,
                      "7001": cluster.nodes[1].port}

    def port(self, number):
        """The test's port in place of the page's port."""
        if number not in self.ports:
            reserved = ReservedPort()
            self.addCleanup(reserved.release)
            self.ports[number] = reserved.number
        return str(self.ports[number])

    def with_ports(self, text):
        return PORT.sub(lambda match: self.port(match.group(1)), text)

    def start(self, command, promise):
        if command == "make run":
            command += f' ARGS="--port {self.port("6380")}"'
        server = Process(["sh", "-c", "exec " + self.with_ports(command)], cwd=self.tree)
        self.addCleanup(server.wait)
        self.addCleanup(server.signal, signal.SIGTERM)
        self.servers.append(server)
        # The build comes first, while other tests run.
        server.wait_log(promised(self.with_ports(promise)), guard_s=5 * GUARD_S)
        if "--engine" in command:
            server.wait_log(ENGINE_MET)

    def output(self, command):
        done = subprocess.run(["sh", "-c", self.with_ports(command)], cwd=self.tree,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=GUARD_S, check=False)
        said = done.stdout + done.stderr
        self.assertEqual(done.returncode, 0, f"{command}\n{said}")
        self.assertNotRegex(said, ERROR, command)
        return said

    def run_line(self, command, promise):
        """Runs a line and checks its output. On a busy machine a load of two seconds may be too small to show an
        effect; then the load runs again."""
        wanted, guard = promised(self.with_ports(promise)), time.monotonic() + GUARD_S
        said, again = self.output(command), self.load and LOADED.match(command)
        while again and not re.search(wanted, said) and time.monotonic() < guard:
            note(f"{command}: no {promise} in\n{said}\n{self.load} runs again")
            self.output(self.load)
            said = self.output(command)
        self.assertRegex(said, wanted, command)
        self.load = command if LOAD.match(command) else self.load

    def run_dry(self, command, wanted):
        done = subprocess.run(["sh", "-c", f"{command} -n"], cwd=self.tree, capture_output=True,
                              text=True, timeout=GUARD_S, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, wanted)

    def run_page(self, page):
        """Runs its blocks in order; returns the commands."""
        done = []
        for language, lines in blocks(read(page)):
            for command, promise in lines if language == "sh" else ():
                if SERVES.match(command):
                    self.start(command, promise)
                elif command in DRY:
                    self.run_dry(command, DRY[command])
                else:
                    self.run_line(command, promise)
                done.append(command)
        return done

    def test_other_pages(self):
        """PATTERNS.md in order; every command of HEAT.md's plan for an incident is accepted."""
        self.output("make all")  # the objects are compiled; a reader of this page has done it
        self.assertGreater(len(self.run_page("docs/PATTERNS.md")), 20)

        self.output("touch heat.conf")  # CONFIG REWRITE writes it
        self.start("build/heatsink serve --port 6380 --config heat.conf", "listening on 127.0.0.1:6380")
        lines = [line.partition("  #")[0].strip() for block in
                 re.findall(r"(?ms)^ *```sh\n(.*?)^ *```$", read("docs/HEAT.md")) for line in block.splitlines()]
        self.assertGreater(len(lines), 8)
        for line in lines:
            self.assertRegex(line, "^redis-cli ")
            self.output(line)

    def test_all_in_order(self):
        done = self.run_page("README.md")
        top = re.search(r"(?m)^KEY .*$", self.output("build/heatsink top --once --target 127.0.0.1:6380"))
        self.assertIn(top.group(0), read("README.md"), "the capture in the README has other columns than top")
        for command in ("make run", "make test"):
            self.assertIn(command, done)
        self.assertGreater(len(self.servers), 3)
        self.assertTrue(os.path.isdir(os.path.join(self.tree, "data")), "data stays in ./data")

        self.servers[0].signal(signal.SIGTERM)
        self.servers[0].wait()
        with self.assertRaises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", self.ports["6380"]))


if INSTRUMENTED:
    del Commands  # the page's commands use the plain build, so a sanitizer run skips them

if __name__ == "__main__":
    unittest.main()
