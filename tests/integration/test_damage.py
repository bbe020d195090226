"""Goal: damage to the files of the embedded engine is never served and never ignored silently. After a flipped byte in
any file, one of three things holds: the server has every acknowledged write; it refuses to start and names the file;
or the read of the damaged key is an error that names it. `heatsink check` finds damage that reads cannot see;
`heatsink repair` gives up the damaged part and nothing else.

Method: two folders are written once: in one the server was killed, so that its log is needed; in the other the
server was stopped, so that its stores hold everything. Each trial copies a folder, flips one byte at a seeded place,
starts a server and reads every key. HEATSINK_DAMAGE_TRIALS=40 runs that many trials of each kind.
"""

import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

import resp
import servers

SANITIZERS = ("address",)  # one thread reads the files at the start

KEYS = 300
ARGS = ("--workers", "1", "--partitions", "2", "--log-size", "256kb")


def value_of(key, version):
    return b"value-%d-of-%d-" % (version, key) + b"x" * (key % 90)


def write(server, version, keys):
    """Writes the keys one by one, so that each becomes a record of the log."""
    with resp.Connection(server.port) as connection:
        for key in keys:
            expiry = ("EX", 100000) if key % 5 == 0 else ()
            reply = connection.call("SET", "key%d" % key, value_of(key, version), *expiry)
            assert reply.raw == b"+OK\r\n", reply.raw


def run(*words):
    """Runs a subcommand; returns its exit status and all output."""
    done = subprocess.run([servers.heatsink_path(), *words], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
                          timeout=servers.GUARD_S)
    return done.returncode, done.stdout.decode("utf-8", "replace")


def files_of(folder):
    found = {}
    for name in sorted(os.listdir(folder)):
        path = os.path.join(folder, name)
        if os.path.isfile(path) and not name.endswith("-lock"):
            with open(path, "rb") as file:
                found[name] = file.read()
    return found


class Folders(unittest.TestCase):
    """Makes the two folders, and copies of them for trials."""

    @classmethod
    def setUpClass(cls):
        cls.home = tempfile.mkdtemp(prefix="heatsink-damage-")
        cls.killed = os.path.join(cls.home, "killed")
        cls.stopped = os.path.join(cls.home, "stopped")
        with servers.Heatsink(*ARGS) as server:
            write(server, 1, range(KEYS))
            assert server.stop() == 0
            server.start()  # the stop made a checkpoint, so the log starts again
            write(server, 2, range(KEYS))
            server.kill9()
            shutil.copytree(server.data, cls.killed)
            server.start()
            assert server.stop() == 0
            shutil.copytree(server.data, cls.stopped)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.home)

    def copy(self, folder):
        path = os.path.join(self.home, "trial")
        shutil.rmtree(path, ignore_errors=True)
        shutil.copytree(folder, path)
        return path

    def flip(self, folder, name, at, bits):
        with open(os.path.join(folder, name), "r+b") as file:
            file.seek(at)
            byte = file.read(1)[0]
            file.seek(at)
            file.write(bytes([byte ^ bits]))

    def trials(self, few):
        return int(os.environ.get("HEATSINK_DAMAGE_TRIALS") or few)

    def start(self, folder):
        """Starts a server on the folder; on a refusal returns None and its output."""
        try:
            return servers.Heatsink(*ARGS, data=folder), ""
        except AssertionError as refusal:
            return None, str(refusal)

    def read_all(self, server):
        """Counts keys by the result of a read: right, error (which names the key), missing, wrong, dead (the
        server ended)."""
        seen = {"right": 0, "error": 0, "missing": 0, "wrong": 0, "dead": 0}
        try:
            with resp.Connection(server.port) as connection:
                for key in range(KEYS):
                    raw = connection.call("GET", "key%d" % key).raw
                    value = value_of(key, 2)
                    if raw == b"$%d\r\n%s\r\n" % (len(value), value):
                        seen["right"] += 1
                    elif raw.startswith(b"-ERR damaged data: the record of key 'key%d'" % key):
                        seen["error"] += 1
                    else:
                        seen["missing" if raw == b"$-1\r\n" else "wrong"] += 1
        except (OSError, resp.Closed):
            seen["dead"] = 1
        return seen


class Flips(Folders):
    """One flipped byte."""

    def trial(self, source, name, at, bits, totals):
        folder = self.copy(source)
        self.flip(folder, name, at, bits)
        what = "%s, byte %d ^ %d" % (name, at, bits)
        status, said = run("check", "--data", folder)
        server, refusal = self.start(folder)
        totals["trials"] += 1
        if not server:
            self.assertIn("damaged data", refusal, what)
            self.assertRegex(refusal, r"repair|backup", what)
            self.assertIn(folder, refusal, what)
            self.assertEqual(status, 1, what + "\n" + said)
            totals["refused"] += 1
            return
        try:
            seen = self.read_all(server)
        finally:
            server.kill9()
        self.assertEqual(seen["wrong"], 0, what)
        if seen["missing"] or seen["dead"] or seen["error"]:
            # Reads cannot detect damage in LMDB's tree pages, `heatsink check` can.
            self.assertTrue(name.startswith("store-"), "%s: %r" % (what, seen))
            self.assertEqual(status, 1, "%s: %r\n%s" % (what, seen, said))
            totals["lost, found by check"] += seen["missing"] > 0
            totals["server ended, found by check"] += seen["dead"]
            totals["error that names the key"] += seen["error"]
        else:
            totals["everything there"] += 1

    def hunt(self, source, name, places, count, seed):
        rng = random.Random(seed)
        totals = dict.fromkeys(("trials", "everything there", "refused",
                                "error that names the key", "lost, found by check",
                                "server ended, found by check"), 0)
        for _ in range(count):
            self.trial(source, name, rng.choice(places), 1 << rng.randrange(8), totals)
        print("%s: %d keys acknowledged; %s" % (name, KEYS, ", ".join(
            "%s %d" % item for item in totals.items() if item[1])), file=sys.stderr)
        return totals

    def test_log(self):
        """A start needs every record of the log that it replays, and none of the other log file."""
        for name in ("log-0", "log-1"):
            data = files_of(self.killed)[name]
            places = [at for at, byte in enumerate(data) if byte] or range(len(data))
            totals = self.hunt(self.killed, name, places, self.trials(4), 1)
            self.assertEqual(totals["everything there"] + totals["refused"], totals["trials"])

    def test_checkpoint_files(self):
        for name in ("checkpoint-0", "checkpoint-1"):
            places = range(len(files_of(self.killed)[name]))
            totals = self.hunt(self.killed, name, places, self.trials(3), 2)
            self.assertEqual(totals["everything there"], totals["trials"])

    def test_format(self):
        for name in ("format", "format.copy"):
            places = range(len(files_of(self.killed)[name]))
            self.hunt(self.killed, name, places, self.trials(2), 3)

    def test_stores(self):
        for name in ("store-000", "store-001"):
            data = files_of(self.stopped)[name]
            used = [at for at in range(0, len(data), 4096) if any(data[at:at + 4096])]
            places = [at + more for at in used for more in range(4096)]
            self.hunt(self.stopped, name, places, self.trials(8), 4)

    def test_values_in_stores(self):
        """Every flip inside a value leads to an error that names the key."""
        totals = None
        for name in ("store-000", "store-001"):
            data = files_of(self.stopped)[name]
            places = [at.start() + 3 for at in re.finditer(rb"value-2-of", data)]
            totals = self.hunt(self.stopped, name, places, self.trials(3), 5)
            self.assertEqual(totals["trials"], totals["error that names the key"] +
                             totals["everything there"])  # the flip hit a page that is not in use


class CheckAndRepair(Folders):
    """The subcommands check and repair."""

    def test_a_whole_folder(self):
        for source in (self.killed, self.stopped):
            before = files_of(source)
            status, said = run("check", "--data", source)
            self.assertEqual(status, 0, said)
            self.assertRegex(said, r"\nwhole: \d+ keys")
            status, said = run("repair", "--data", source, "--yes")
            self.assertEqual(status, 0, said)
            self.assertIn("Nothing is damaged", said)
            self.assertEqual(files_of(source), before)

    def test_a_folder_in_use(self):
        with servers.Heatsink(*ARGS) as server:
            for name in os.listdir(server.data):
                if "lock" in name:  # removing the lock file must not be a way around the lock
                    os.unlink(os.path.join(server.data, name))
            for words in (("check",), ("repair", "--dry-run"), ("repair", "--yes")):
                status, said = run(words[0], "--data", server.data, *words[1:])
                self.assertEqual(status, 2, said)
                self.assertIn("in use by another process", said)

    def test_no_data_folder(self):
        for path in (os.path.join(self.home, "nothing"), self.home):
            status, said = run("check", "--data", path)
            self.assertEqual(status, 2, said)
            self.assertIn(path, said)

    def test_formats_of_before(self):
        folder = self.copy(self.stopped)
        os.unlink(os.path.join(folder, "format.copy"))
        for number in (1, 2):
            with open(os.path.join(folder, "format"), "w") as file:
                file.write("heatsink data, format %d\npartitions 2\nseed 0123456789abcdef\n" % number)
            server, refusal = self.start(folder)
            self.assertIsNone(server)
            self.assertIn("has format %d" % number, refusal)
            self.assertIn("docs/ENGINES.md", refusal)

    def damage_log(self, folder):
        """Damages a record in the middle of the log; returns the key that it wrote."""
        data = files_of(folder)
        for name in ("log-0", "log-1"):
            at = data[name].find(b"value-2-of-%d-" % (KEYS - 20))
            if at >= 0:
                self.flip(folder, name, at, 1)
                return KEYS - 20
        raise AssertionError("no such record")

    def test_a_damaged_log(self):
        folder = self.copy(self.killed)
        key = self.damage_log(folder)
        before = files_of(folder)
        for words in (("--dry-run",), ()):
            status, said = run("repair", "--data", folder, *words)
            self.assertEqual(status, 0 if words else 1, said)
            self.assertIn("a write of key 'key%d'" % key, said)
            self.assertIn("Nothing was changed", said)
            self.assertEqual(files_of(folder), before)
        status, said = run("repair", "--data", folder, "--yes")
        self.assertEqual(status, 0, said)
        aside = [name for name in os.listdir(folder) if name.startswith("aside-")]
        self.assertEqual(len(aside), 1)
        kept = files_of(os.path.join(folder, aside[0]))
        for name in ("log-0", "log-1", "checkpoint-0", "checkpoint-1", "format"):
            self.assertEqual(kept[name], before[name])
        self.assertEqual(run("check", "--data", folder)[0], 0)
        server, refusal = self.start(folder)
        self.assertIsNotNone(server, refusal)
        seen = self.read_all(server)
        self.assertEqual(seen["right"], KEYS - 1)
        server.kill9()

    def test_a_short_log(self):
        """The log is missing or truncated: the start refuses, check reports it, repair makes a start possible."""
        data = files_of(self.killed)
        name = next(name for name in ("log-0", "log-1") if b"value-2-of-3-" in data[name])
        for length in (None, 0, 8192):
            folder = self.copy(self.killed)
            path = os.path.join(folder, name)
            if length is None:
                os.unlink(path)
            else:
                os.truncate(path, length)
            server, refusal = self.start(folder)
            self.assertIsNone(server)
            self.assertIn(path, refusal)
            self.assertIn("heatsink repair --data %s --dry-run" % folder, refusal)
            status, said = run("check", "--data", folder)
            self.assertEqual(status, 1, said)
            self.assertIn(path, said)
            status, said = run("repair", "--data", folder, "--yes")
            self.assertEqual(status, 0, said)
            self.assertIn("without what is missing of '%s'" % name, said)
            self.assertRegex(said, r"kept: \d+ whole records")
            self.assertEqual(run("check", "--data", folder)[0], 0)
            server, refusal = self.start(folder)
            self.assertIsNotNone(server, refusal)
            with resp.Connection(server.port) as connection:
                self.assertEqual(connection.call("DBSIZE").raw, b":%d\r\n" % KEYS)
            server.kill9()

    def test_a_damaged_record(self):
        folder = self.copy(self.stopped)
        for name, data in files_of(folder).items():
            for at in re.finditer(rb"value-2-of-7-", data):
                if name.startswith("store-"):
                    self.flip(folder, name, at.start(), 1)
        status, said = run("check", "--data", folder)
        self.assertEqual(status, 1, said)
        self.assertIn("record of key 'key7' fails its checksum", said)
        server, refusal = self.start(folder)
        self.assertIsNotNone(server, refusal)
        seen = self.read_all(server)
        self.assertEqual((seen["right"], seen["error"]), (KEYS - 1, 1))
        client = server.client()
        self.assertEqual(client.info("stats")["damaged_reads"], 1)
        self.assertIn(b"key7", client.keys())
        server.wait_log("damaged data: the record of key 'key7'")
        self.assertEqual(server.stop(), 0)

        status, said = run("repair", "--data", folder, "--yes")
        self.assertEqual(status, 0, said)
        aside = [name for name in os.listdir(folder) if name.startswith("aside-")]
        with open(os.path.join(folder, aside[0], "records")) as file:
            self.assertIn("key7", file.read())
        self.assertEqual(run("check", "--data", folder)[0], 0)
        server, refusal = self.start(folder)
        self.assertIsNotNone(server, refusal)
        seen = self.read_all(server)
        self.assertEqual((seen["right"], seen["missing"]), (KEYS - 1, 1))
        server.kill9()

    def test_a_damaged_format(self):
        folder = self.copy(self.stopped)
        self.flip(folder, "format", 40, 1)
        status, said = run("repair", "--data", folder, "--yes")
        self.assertEqual(status, 0, said)
        server, refusal = self.start(folder)
        self.assertIsNotNone(server, refusal)
        self.assertEqual(self.read_all(server)["right"], KEYS)
        server.kill9()

    def test_a_checkpoint_file_in_both_copies(self):
        """Both copies of a checkpoint file are damaged. If it is the older checkpoint, repair loses nothing. If it
        is the newer one, the log may start after the older checkpoint, or pages of the older one may have been
        reused; then repair refuses, or names what is missing."""
        for name in ("checkpoint-0", "checkpoint-1"):
            folder = self.copy(self.killed)
            half = len(files_of(folder)[name]) // 2
            self.flip(folder, name, 1000, 1)
            self.flip(folder, name, half + 1000, 1)
            server, refusal = self.start(folder)
            self.assertIsNone(server)
            self.assertIn("%s/%s" % (folder, name), refusal)
            self.assertIn("heatsink repair --data %s --dry-run" % folder, refusal)
            status, said = run("repair", "--data", folder, "--yes")
            if status != 0:
                self.assertIn("restore the folder from", said)
                continue
            server, refusal = self.start(folder)
            self.assertIsNotNone(server, refusal)
            seen = self.read_all(server)
            server.kill9()
            if seen["right"] != KEYS:
                self.assertRegex(said, r"lost: records \d+ to \d+")

    def test_meta_pages_of_a_store(self):
        """A start restores the meta pages from the checkpoint, so damaged ones lose nothing. If the log is damaged
        as well, repair makes a start possible."""
        for at, also_log in ((10, False), (16, False), (4096 + 16, False), (16, True)):
            folder = self.copy(self.killed)
            self.flip(folder, "store-000", at, 0xff)
            if also_log:
                self.damage_log(folder)
            status, said = run("check", "--data", folder)
            self.assertEqual(status, 1, said)
            self.assertRegex(said, r"store-000: LMDB's meta pages .* a start of the server or")
            self.assertRegex(said, r"store-000: [1-9]\d* keys")
            self.assertIn("1 stores with damaged meta pages, 0 faults of the trees", said)
            before = files_of(folder)
            server, refusal = self.start(folder)
            self.assertEqual(server is None, also_log, refusal)
            if server:
                self.assertEqual(self.read_all(server)["right"], KEYS)
                server.kill9()
                folder = self.copy(self.killed)
                self.flip(folder, "store-000", at, 0xff)
            else:
                self.assertEqual(files_of(folder), before)
            status, said = run("repair", "--data", folder, "--yes")
            self.assertEqual(status, 0, said)
            self.assertIn("meta pages of 1 stores back", said)
            self.assertEqual(run("check", "--data", folder)[0], 0)
            server, refusal = self.start(folder)
            self.assertIsNotNone(server, refusal)
            self.assertEqual(self.read_all(server)["right"], KEYS - also_log)
            server.kill9()

    def test_a_page_that_makes_no_sense(self):
        """The child process that reads the page may crash: check reports this and still reads the other
        stores."""
        folder = self.copy(self.stopped)
        path = os.path.join(folder, "store-000")
        with open(path, "r+b") as file:
            data = file.read()
            for at in range(2 * 4096, len(data), 4096):
                if b"value-2-of" in data[at:at + 4096]:
                    file.seek(at)
                    file.write(bytes(random.Random(at).randrange(256) for _ in range(64)))
        status, said = run("check", "--data", folder)
        self.assertEqual(status, 1, said)
        self.assertRegex(said, r"store-000: .*DAMAGED")
        self.assertRegex(said, r"store-001: \d+ keys, \d+ expiries, whole")
        status, said = run("repair", "--data", folder, "--yes")
        self.assertEqual(status, 1, said)
        self.assertIn("restore the folder from", said)


if __name__ == "__main__":
    unittest.main()
