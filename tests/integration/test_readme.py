"""Every command in README.md works, in the order in which a newcomer meets them.

The ```sh blocks are run line by line in a copy of the tree that was never built. Words behind
"#=>" must be in what the line prints. Four kinds of lines are not run as they stand:

  make run            in the background, on a free port; ended with SIGTERM at the end
  make test, bench    only asked what they would do: this test is a part of the one, and the other
                      takes minutes
  port 6380           becomes the port that the server says it listens on
  redis-cli           -e is added, so that an error reply is an exit status
"""
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import unittest

from servers import GUARD_S, Process

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
INSTRUMENTED = re.search("-(address|undefined|thread)$", os.environ.get("HEATSINK_BUILD", ""))

RUN_ONCE = True


def read(name):
    with open(os.path.join(ROOT, name), encoding="utf-8") as file:
        return file.read()


def commands(markdown):
    """The lines of the ```sh blocks, each with the output it promises or ''."""
    for block in re.findall(r"^```sh\n(.*?)^```", markdown, re.M | re.S):
        for line in block.replace("\\\n", " ").splitlines():
            command, _, promise = line.partition("#=>")
            if command.strip():
                yield command.strip(), promise.strip()


class Extraction(unittest.TestCase):
    def test_lines_and_promises(self):
        text = "a\n```sh\nmake run\n\nget a \\\n  b   #=> 1 2\n```\n```text\nno\n```\n```sh\nlast\n```\n"
        self.assertEqual(list(commands(text)),
                         [("make run", ""), ("get a    b", "1 2"), ("last", "")])


class Links(unittest.TestCase):
    def test_every_linked_file_is_there(self):
        for page in ("README.md", "CONTRIBUTING.md", "docs/ACL.md", "docs/COMMANDS.md",
                     "docs/CONTRACTS.md", "docs/HEAT.md", "docs/METRICS.md"):
            for target in re.findall(r"\]\(([^)#:]+)\)", read(page)):
                path = os.path.join(ROOT, os.path.dirname(page), target)
                self.assertTrue(os.path.exists(path), f"{page} links to {target}")

    def test_pages_say_what_the_tables_say(self):
        for name, page, known in (("commands", "docs/COMMANDS.md", "| `GET key` |"),
                                  ("options", "docs/heatsink.conf", "\nsync always\n"),
                                  ("heat", "docs/HEAT.md", "| `ops_low` | integer |"),
                                  ("contracts", "docs/CONTRACTS.md", "| `stale` | `100ms` |"),
                                  ("metrics", "docs/METRICS.md", "| `heatsink_build_info` |")):
            made = subprocess.run([os.path.join(ROOT, "tools/make-docs"), name], check=True,
                                  capture_output=True, text=True).stdout
            self.assertIn(known, made)
            self.assertEqual(made, read(page), "run make docs")


class Commands(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="heatsink-readme-")
        self.addCleanup(folder.cleanup)
        self.tree = os.path.join(folder.name, "heatsink")
        shutil.copytree(ROOT, self.tree, symlinks=True,
                        ignore=lambda path, names: {"build", "data", ".git"} & set(names)
                        if path == ROOT else set())
        self.server = self.port = None

    def start(self, command):
        self.server = Process(["sh", "-c", f'exec {command} ARGS="--port 0"'], cwd=self.tree)
        self.addCleanup(self.server.wait)
        self.addCleanup(self.server.signal, signal.SIGTERM)
        # Everything is built first, beside other tests.
        self.port = self.server.wait_log(r"listening on 127\.0\.0\.1:(\d+)",
                                         guard_s=5 * GUARD_S).group(1)

    def run_line(self, command, promise):
        if self.port:
            command = command.replace("6380", self.port)
        command = re.sub(r"^redis-cli ", "redis-cli -e ", command)
        done = subprocess.run(["sh", "-c", command], cwd=self.tree, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=GUARD_S, check=False)
        said = done.stdout + done.stderr
        self.assertEqual(done.returncode, 0, f"{command}\n{said}")
        self.assertIn(promise, said, command)

    def run_dry(self, command, wanted):
        done = subprocess.run(["sh", "-c", f"{command} -n"], cwd=self.tree, capture_output=True,
                              text=True, timeout=GUARD_S, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, wanted)

    def test_all_in_order(self):
        dry = {"make test": r"tools/run-tests", "make bench": r"bench/run\.py"}
        done = []
        for command, promise in commands(read("README.md")):
            if command == "make run":
                self.start(command)
            elif command in dry:
                self.run_dry(command, dry[command])
            else:
                self.run_line(command, promise)
            done.append(command)
        self.assertIn("make run", done)
        self.assertIn("make test", done)
        self.assertTrue(os.path.isdir(os.path.join(self.tree, "data")), "data stays in ./data")

        self.server.signal(signal.SIGTERM)
        self.server.wait()
        with self.assertRaises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", int(self.port)))


if INSTRUMENTED:
    del Commands  # the README's commands make the plain build: this is a test of that one

if __name__ == "__main__":
    unittest.main()
