"""Goal: a start that cannot work prints the reason in one line, exits with 1 and changes nothing.

Method: the real binary with ports in use, unusable folders, unknown data, wrong options and files; the test checks its
output, its exit status, and the bytes on disk before and after.
"""

import contextlib
import os
import re
import socket
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

import servers
from cases import FolderCase
from checks import GUARD_S, own_disk, tree

SANITIZERS = ("address",)  # a starting server has one thread most of the time


class Starting(FolderCase):
    """A start that cannot work: one line with the reason, exit status 1, no file changed."""

    def run_heatsink(self, *args):
        return subprocess.run([servers.heatsink_path(), *[str(arg) for arg in args]],
                              capture_output=True,
                              text=True, timeout=GUARD_S, check=False, cwd=self.folder)

    def refuse(self, *args, words):
        """Runs heatsink and expects status 1 and one line with all the words; returns the line. HTTP is off unless
        the arguments name it, because a port in use would log another line."""
        if args[0] == "serve" and "--http" not in args:
            args += ("--http", "-1")
        done = self.run_heatsink(*args)
        said = done.stdout + done.stderr
        self.assertEqual(done.returncode, 1, said)
        self.assertEqual(len(said.splitlines()), 1, said)
        for word in words:
            self.assertIn(word, said)
        return said

    def make_data(self, *args):
        """Creates a data folder whose server was stopped cleanly."""
        data = self.path("data")
        with servers.Heatsink("--partitions", "2", *args, data=data) as server:
            server.client().set("kept", "1")
            self.assertEqual(server.stop(), 0)
        return data

    def test_port_in_use(self):
        data = self.make_data()
        before = tree(data)
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = taken.getsockname()[1]
            self.refuse("serve", "--port", port, "--data", data, words=[str(port), "in use"])
            self.assertEqual(tree(data), before)
            self.refuse("serve", "--port", port, "--data", self.path("new"), words=[str(port)])
            self.assertFalse(os.path.exists(self.path("new")))

    def test_addresses_with_colons_stand_in_brackets(self):
        with socket.socket(socket.AF_INET6) as taken:
            taken.bind(("::1", 0))
            taken.listen()
            port = taken.getsockname()[1]
            self.refuse("serve", "--port", port, "--bind", "::1", "--data", self.path("new"),
                        words=[f"cannot listen on [::1]:{port}: ", "in use"])
        with servers.Heatsink("--bind", "127.0.0.1 ::1", data=self.path("data")) as server:
            server.wait_log(rf"listening on 127\.0\.0\.1:{server.port}$")
            server.wait_log(rf"listening on \[::1\]:{server.port}$")
            with socket.create_connection(("::1", server.port), GUARD_S) as client:
                client.sendall(b"CLIENT INFO\r\n")
                self.assertIn(b" addr=[::1]:%d laddr=[::1]:%d "
                              % (client.getsockname()[1], server.port), client.recv(1 << 12))
            storm = self.run_heatsink("storm", "--target", f"[::1]:{server.port}", "--count", 10)
            self.assertRegex(storm.stdout, rf"(?m)^\[::1\]:{server.port}, ")

    def test_data_is_a_file(self):
        with open(self.path("file"), "w", encoding="ascii") as file:
            file.write("mine\n")
        self.refuse("serve", "--port", 0, "--data", self.path("file"), words=[self.path("file")])
        self.refuse("serve", "--port", 0, "--data", self.path("file/below"),
                    words=[self.path("file/below")])
        self.assertEqual(tree(self.folder), {self.path("file"): b"mine\n"})

    def test_data_not_writable(self):
        """A read-only filesystem, which also stops root."""
        disk = self.path("disk")
        os.mkdir(disk)
        with own_disk(disk, "1m", ",ro"), self.assertRaises(AssertionError) as caught:
            servers.Heatsink(data=os.path.join(disk, "data"))
        said = str(caught.exception)
        self.assertIn(os.path.join(disk, "data"), said)
        self.assertIn("Read-only file system", said)

    def test_data_of_a_newer_format(self):
        data = self.make_data()
        path = os.path.join(data, "format")
        with open(path, encoding="ascii") as file:
            text = file.read()
        number = int(re.search(r"format (\d+)", text).group(1))
        for name in ("format", "format.copy"):
            with open(os.path.join(data, name), "w", encoding="ascii") as file:
                file.write(text.replace("format %d" % number, "format %d" % (number + 1)))
        before = tree(data)
        self.refuse("serve", "--port", 0, "--data", data, words=[data, "format %d" % (number + 1)])
        self.assertEqual(tree(data), before)

    def test_damaged_format(self):
        data = self.make_data()
        for damage in (b"", b"nonsense\n", b"\x00" * 59):
            with open(os.path.join(data, "format"), "wb") as file:
                file.write(damage)
            before = tree(data)
            self.refuse("serve", "--port", 0, "--data", data, words=[data])
            self.assertEqual(tree(data), before)

    def test_somebody_else_s_folder(self):
        """Files of other programs are refused or ignored, never removed."""
        data = self.path("data")
        os.mkdir(data)
        with open(os.path.join(data, "thesis.tex"), "w", encoding="ascii") as file:
            file.write("ten years of work\n")
        with contextlib.suppress(AssertionError):
            servers.Heatsink(data=data).close()
        with open(os.path.join(data, "thesis.tex"), encoding="ascii") as file:
            self.assertEqual(file.read(), "ten years of work\n")

    def test_second_server_on_the_same_data(self):
        data = self.path("data")
        with servers.Heatsink(data=data) as server:
            server.client().set("a", "1")
            self.refuse("serve", "--port", 0, "--data", data, words=[data, "in use"])
            self.assertEqual(server.client().get("a"), b"1")
            self.assertTrue(server.client().set("a", "2"))
            server.kill9()
            server.start()  # the lock of a killed server does not prevent a start
            self.assertEqual(server.client().get("a"), b"2")

    def test_partitions_stay(self):
        data = self.make_data()
        with servers.Heatsink("--partitions", "7", data=data) as server:
            self.assertEqual(server.client().get("kept"), b"1")
            self.assertEqual(len([name for name in os.listdir(data)
                                  if re.fullmatch(r"store-\d+", name)]), 2)

    def test_open_to_the_world_needs_a_password(self):
        for address in ("0.0.0.0", "::", "127.0.0.1 0.0.0.0"):
            with self.subTest(address):
                self.refuse("serve", "--port", 0, "--data", self.path("new"), "--bind", address,
                            words=["protected-mode", "requirepass"])
                self.assertFalse(os.path.exists(self.path("new")))
        for args in (["--requirepass", "secret"], ["--protected-mode", "no"]):
            with servers.Heatsink("--bind", "0.0.0.0", *args) as server:
                self.assertEqual(server.client(password="secret" if "secret" in args
                                               else None).ping(), True)

    CONFIGS = [
        ("port 6390\nnosuch 5\n", 2, "nosuch"), ("# first\n\nport abc\n", 3, "abc"),
        ("maxclients\n", 1, "maxclients"), ("sync sometimes\n", 1, "sometimes"),
        ("port 70000\n", 1, "70000"),
        ("port 1 2\n", 1, "2"), ("workers -1\n", 1, "-1"), ("store-size 4xb\n", 1, "4xb"),
        ("requirepass \"unbalanced\n", 1, "unbalanced"), ("protected-mode perhaps\n", 1, "perhaps"),
    ]

    def test_bad_configuration_file(self):
        path = self.path("bad.conf")
        for text, line, word in self.CONFIGS:
            with self.subTest(text=text):
                with open(path, "w", encoding="ascii") as file:
                    file.write(text)
                for extra in ([], ["--check-config"]):
                    said = self.refuse("serve", "--config", path, "--data", self.path("new"),
                                       *extra, words=[word])
                    self.assertRegex(said, re.escape(path) + r"\b.*\b%d\b" % line)
        self.refuse("serve", "--config", self.path(""), "--check-config", words=["cannot read"])
        self.refuse("serve", "--config", self.path("absent.conf"), words=[self.path("absent.conf")])
        self.assertFalse(os.path.exists(self.path("new")))

    def test_bad_flags(self):
        for args, word in ((["--nosuch", "5"], "nosuch"), (["--port", "abc"], "abc"),
                           (["--port"], "port"),
                           (["--sync", "maybe"], "maybe"), (["stray"], "stray"),
                           (["--partitions", "0"], "0")):
            with self.subTest(args=args):
                self.refuse("serve", *args, "--data", self.path("new"), words=[word])
        self.assertEqual(self.run_heatsink("nosuch").returncode, 1)
        self.assertFalse(os.path.exists(self.path("new")))

    def test_renamed_options(self):
        """The old name of an option is an error that names the new one: as a flag, in the file and in CONFIG SET."""
        with open(os.path.join(servers.ROOT, "src/serve/options.def"), encoding="utf-8") as file:
            renamed = re.findall(r'(?m)^RENAMED\("([a-z-]+)", "([a-z-]+)"\)$', file.read())
        self.assertIn(("hot-cool", "hot-cool-down"), renamed)
        path = self.path("old.conf")
        with servers.Heatsink() as server, server.raw() as connection:
            for old, new in renamed:
                with self.subTest(old):
                    error = f"option '{old}' is now called '{new}'"
                    self.refuse("serve", f"--{old}", "1", "--data", self.path("new"), words=[error])
                    self.refuse("serve", f"--{old}=1", "--data", self.path("new"), words=[error])
                    with open(path, "w", encoding="ascii") as file:
                        file.write(f"port 0\n{old} 1\n")
                    self.refuse("serve", "--config", path, "--check-config", words=[f"{path}:2: {error}"])
                    for words in ((old, "1"), ("maxclients", "9", old, "1"), (old,) * 3):
                        self.assertEqual(connection.call("CONFIG", "SET", *words).raw, f"-ERR {error}\r\n".encode())
                    self.assertEqual(connection.call("CONFIG", "GET", old).raw, b"*0\r\n")
                    self.assertEqual(len(connection.call("CONFIG", "GET", new).items), 2)
            self.assertEqual(connection.call("CONFIG", "GET", "maxclients").items[1].text, b"10000")
        self.assertFalse(os.path.exists(self.path("new")))

    def test_check_config(self):
        path = self.path("good.conf")
        with open(path, "w", encoding="ascii") as file:
            file.write("# all is well\nport 0\n\nmaxclients 55\nrequirepass 'two words'\n"
                       "store-size 64mb\n")
        done = self.run_heatsink("serve", "--config", path, "--data", self.path("new"),
                                 "--check-config")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertFalse(os.path.exists(self.path("new")))

    def test_version_and_help(self):
        for args in (["--version"], ["-v"], ["version"], ["serve", "--version"], ["serve", "-v"]):
            done = self.run_heatsink(*args)
            self.assertEqual(done.returncode, 0)
            self.assertRegex(done.stdout, r"^heatsink \d+\.\d+\.\d+\n$")
        for args in (["--help"], ["-h"], ["help"]):
            done = self.run_heatsink(*args)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            for name in ("serve", "top", "storm", "sim", "version", "help"):
                self.assertRegex(done.stdout, rf"(?m)^  {name} ")
        for args in (["serve", "-h"], ["help", "serve"]):
            done = self.run_heatsink(*args)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertIn("--engine", done.stdout)

    def test_mistyped_subcommand(self):
        for args, nearest in ((["strom"], "did you mean 'storm'?"), (["help", "srve"], "'serve'?"),
                              (["xyzzy"], "'xyzzy' is not a subcommand (heatsink help lists them)")):
            done = self.run_heatsink(*args)
            self.assertEqual(done.returncode, 1)
            self.assertIn(nearest, done.stderr)

    def test_help_mentions_every_option(self):
        done = self.run_heatsink("serve", "--help")
        self.assertEqual(done.returncode, 0)
        flags = set(re.findall(r"(?m)^\s+(?:-[a-z], )?--([a-z-]+)", done.stdout))
        with servers.Heatsink() as server:
            options = set(server.client(decode_responses=True).config_get("*"))
        fixed = {"appendonly", "cluster-enabled", "cluster-require-full-coverage", "databases",
                 "latency-monitor-threshold", "maxmemory", "maxmemory-policy",
                 "notify-keyspace-events",
                 "proto-max-bulk-len", "save"}  # CONFIG GET answers these for clients; they are no options
        # ACL shows users, not CONFIG.
        self.assertEqual(flags - {"check-config", "version", "help", "user"}, options - fixed)


if __name__ == "__main__":
    unittest.main()
