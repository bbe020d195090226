"""The servers that `make bench` compares, one process each: start, stop, CPU time and memory."""
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
HEATSINK = os.path.abspath(os.environ.get("HEATSINK") or os.path.join(ROOT, "build", "heatsink"))
NULL = os.path.join(os.path.dirname(HEATSINK), "bench", "null")
TICKS = os.sysconf("SC_CLK_TCK")
GUARD_S = 300


class Server:
    """One process on a free port. `ready`: the log text that means it is listening. A thread reads the log, so that
    the server never blocks on it; the last lines are shown if it dies."""

    ready = None

    def __init__(self):
        self.data = tempfile.mkdtemp(prefix="heatsink-bench-")
        self.port = self.child = None
        self.log = []

    def command(self, port):
        raise NotImplementedError

    def start(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        is_ready = threading.Event()
        self.child = subprocess.Popen(self.command(self.port), stdin=subprocess.DEVNULL,
                                      stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        threading.Thread(target=self._read, args=(self.child.stdout, is_ready),
                         daemon=True).start()
        if not is_ready.wait(GUARD_S) or self.child.poll() is not None:
            raise SystemExit(f"{self.name} did not start:\n" + "\n".join(self.log))
        return self

    def _read(self, lines, is_ready):
        for line in lines:
            self.log = self.log[-50:] + [line.rstrip()]
            if re.search(self.ready, line):
                is_ready.set()
        is_ready.set()

    def stop(self):
        if self.child and self.child.poll() is None:
            self.child.send_signal(signal.SIGTERM)
            try:
                self.child.wait(60)
            except subprocess.TimeoutExpired:
                self.child.kill()
                self.child.wait()

    def close(self):
        self.stop()
        shutil.rmtree(self.data, ignore_errors=True)

    def cpu_s(self):
        """User and system CPU time of all threads, in seconds."""
        with open(f"/proc/{self.child.pid}/stat", encoding="ascii") as stat:
            fields = stat.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    def memory(self):
        """Resident private bytes, and resident bytes with mapped files."""
        with open(f"/proc/{self.child.pid}/status", encoding="ascii") as status:
            text = status.read()

        def kib(name):
            return int(re.search(name + r":\s+(\d+) kB", text).group(1))
        return kib("RssAnon") * 1024, kib("VmRSS") * 1024

    def connect(self):
        return socket.create_connection(("127.0.0.1", self.port), timeout=GUARD_S)


class Null(Server):
    """The null server (null.c): answers +OK, or a value if value_bytes is set."""
    name, ready = "null", "listening"

    def __init__(self, value_bytes, threads=1):
        super().__init__()
        self.value_bytes, self.threads = value_bytes, threads
        if threads > 1:
            self.name = f"null, {threads} threads"

    def command(self, port):
        return [NULL, str(port), str(self.value_bytes), str(self.threads)]


class Redis(Server):
    """redis-server with the durability of heatsink's --sync: `off` is an append-only file without fsync, `always` one
    with an fsync before every reply."""
    name, ready = "redis", "Ready to accept connections"

    def __init__(self, sync):
        super().__init__()
        self.sync = sync

    def command(self, port):
        fsync = {"off": "no", "always": "always"}[self.sync]
        return ["redis-server", "--port", str(port), "--dir", self.data, "--save", "",
                "--appendonly", "yes", "--appendfsync", fsync,
                "--auto-aof-rewrite-percentage", "0"]


class Heatsink(Server):
    name, ready = "heatsink", "listening on"

    def __init__(self, sync):
        super().__init__()
        self.sync = sync

    def command(self, port):
        return [HEATSINK, "serve", "--port", str(port), "--http", "0", "--data", self.data,
                "--sync", self.sync]


def first_answer_s(server):
    """Starts the server; returns the seconds until the first reply."""
    begin = time.monotonic()
    server.start()
    with server.connect() as connection:
        while True:
            connection.sendall(b"GET key:000000000000\r\n")
            reply = connection.recv(4096)
            if not reply:
                raise SystemExit(f"{server.name} closed the connection:\n" + "\n".join(server.log))
            if not reply.startswith(b"-LOADING"):
                return time.monotonic() - begin
