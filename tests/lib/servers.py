"""Real servers for tests: processes on free ports, in folders of their own, ended with the test.

    with Heatsink("--workers", "2") as server, Redis() as redis:
        server.client().set("a", "1")           # python3-redis
        server.raw().call("GET", "a").raw       # the bytes on the wire, see resp.py
        server.kill9()
        server.start()                          # the same data folder, a new port
        self.assertEqual(server.stop(), 0)

Nothing here waits by the clock: a server is ready when it says so in its log, and gone when its
process has ended. GUARD_S only turns a hang into a failure; it is long because sanitizers,
valgrind and busy machines are slow. HEATSINK names the binary; HEATSINK_WRAP puts a command in
front of it ("valgrind -q").
"""
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import textwrap
import threading

import redis
from resp import Connection

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
GUARD_S = 120

STARTS = 5  # of a server whose port is taken
TAKEN = re.compile("address already in use", re.I)

# heatsink says this when it has heard from the server, or the cluster, behind it.
ENGINE_MET = r" cluster: \d+ shards|: Redis \d"

# A server that printed one of these is broken, whatever it answered.
ALARMS = re.compile(r"impossible state|Sanitizer|runtime error:|Assertion .* failed")


def note(said):
    """Tells of trouble with a test's surroundings that was overcome: the report shows it, though the
    test passes."""
    print("\n" + textwrap.indent(said, "note: "), file=sys.stderr, flush=True)


def again_if_taken(start):
    """Runs start(), again while the server it starts finds its port taken by another program."""
    for attempts_left in reversed(range(STARTS)):
        try:
            return start()
        except AssertionError as error:
            if not attempts_left or not TAKEN.search(str(error)):
                raise
            note(f"a port was taken, the server is started again: {error}")
    raise AssertionError("not reached")


def heatsink_path():
    return os.path.abspath(os.environ.get("HEATSINK") or os.path.join(ROOT, "build", "heatsink"))


class ReservedPort:
    """A free port that nobody else gets while it is held. Bound and not listening, with
    SO_REUSEADDR, it does not stand in the way of the server it is meant for."""

    def __init__(self):
        self.socket = socket.socket()
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(("127.0.0.1", 0))
        self.number = self.socket.getsockname()[1]

    def release(self):
        self.socket.close()


class Process:
    """A child process whose output is read all the time, line by line, into `log`."""

    def __init__(self, command, env=None, cwd=None):
        self.log = []
        self.ended = False  # its output has
        self.change = threading.Condition()
        self.child = subprocess.Popen(command, env=env, cwd=cwd, stdin=subprocess.DEVNULL,
                                      stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.pid = self.child.pid
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        for line in self.child.stdout:
            with self.change:
                self.log.append(line.decode("utf-8", "replace").rstrip("\r\n"))
                self.change.notify_all()
        with self.change:
            self.ended = True
            self.change.notify_all()

    def wait_log(self, pattern, guard_s=GUARD_S):
        """The match of the first line that has `pattern`, waiting for it to come."""
        wanted, seen, found = re.compile(pattern), 0, None

        def look():
            nonlocal seen, found
            while seen < len(self.log) and not found:
                found = wanted.search(self.log[seen])
                seen += 1
            return found or self.ended
        with self.change:
            self.change.wait_for(look, guard_s)
        if not found:
            why = "ended without" if self.ended else "is still without"
            raise AssertionError(f"{self.child.args[0]} {why} a line like {pattern!r}:\n{self.text()}")
        return found

    def text(self):
        return "\n".join(self.log)

    def wait(self, guard_s=GUARD_S):
        """Its exit status, once it has ended and everything it printed is in the log."""
        try:
            code = self.child.wait(guard_s)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"{self.child.args[0]} does not end:\n{self.text()}") from None
        self.reader.join(guard_s)
        self.child.stdout.close()
        return code

    def signal(self, number):
        self.child.send_signal(number)

    def kill9(self):
        self.child.kill()
        return self.wait()


class Server:
    """What the two servers have in common: start, stop, clients, a folder."""

    def __init__(self, *args, data=None):
        self.args = [str(arg) for arg in args]
        self.own_data = data is None
        self.data = str(data) if data else tempfile.mkdtemp(prefix="heatsink-test-")
        self.process = None
        self.port = None
        self.clients = []
        self.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def start(self):
        raise NotImplementedError

    @property
    def pid(self):
        return self.process.pid

    @property
    def log(self):
        return self.process.log

    def running(self):
        return self.process is not None and self.process.child.poll() is None

    def wait_log(self, pattern, guard_s=GUARD_S):
        return self.process.wait_log(pattern, guard_s)

    def wait(self, guard_s=GUARD_S):
        return self.process.wait(guard_s)

    def signal(self, number):
        self.process.signal(number)

    def client(self, **options):
        """A python3-redis client; closed with the server."""
        options.setdefault("socket_timeout", GUARD_S)
        client = redis.Redis(host="127.0.0.1", port=self.port, **options)
        self.clients.append(client)
        return client

    def raw(self):
        """A plain connection that keeps the bytes (resp.Connection); closed with the server."""
        connection = Connection(self.port, guard_s=GUARD_S)
        self.clients.append(connection)
        return connection

    def rss_bytes(self):
        """Its resident memory."""
        with open(f"/proc/{self.pid}/status", encoding="ascii") as status:
            return int(re.search(r"VmRSS:\s+(\d+) kB", status.read()).group(1)) * 1024

    def stop(self):
        """SIGTERM; the exit status."""
        self._close_clients()
        self.process.signal(signal.SIGTERM)
        return self.process.wait()

    def kill9(self):
        self._close_clients()
        return self.process.kill9()

    def _close_clients(self):
        for client in self.clients:
            client.close()
        self.clients = []

    def close(self):
        """Ends it, if it still runs, and removes a folder that was made for it."""
        self._close_clients()
        if self.running():
            self.process.signal(signal.SIGTERM)
        if self.process is not None:
            try:
                self.process.wait()
            except AssertionError:
                self.process.kill9()
                raise
        if self.own_data:
            shutil.rmtree(self.data, ignore_errors=True)


class Heatsink(Server):
    """heatsink serve with these arguments. start() after stop() or kill9() goes on with the same
    data, on another port unless asked for the same one. HTTP is on a free port too, `http_port`,
    unless an argument says otherwise. With --tls-port there is a `tls_port`, and no `port` unless
    --port is there too (lib/tls.py)."""

    http_port = tls_port = None

    def start(self, same_port=False):
        return again_if_taken(lambda: self._start(same_port))

    def _start(self, same_port):
        port = self.port if same_port and self.port else 0
        wrap = shlex.split(os.environ.get("HEATSINK_WRAP", ""))
        self.process = Process([*wrap, heatsink_path(), "serve", "--port", str(port),
                                "--http", "0", "--data", self.data, *self.args])
        try:
            self.wait_log(" try: redis-cli ")  # the last it says of itself
            self.port, self.tls_port, self.http_port = (
                int(found.group(1)) if (found := re.search(rf" {what} on \S+:(\d+)",
                                                           self.process.text())) else None
                for what in ("listening", "tls", "http"))
        except AssertionError:
            self.process.kill9()
            raise
        return self

    def wait_engine(self):
        """Until it has heard from the server, or the cluster, behind it. A start waits two seconds for
        that; until it comes, commands are turned away."""
        self.wait_log(ENGINE_MET)
        return self

    def check(self):
        """Fails when the server printed what a healthy one never prints."""
        if ALARMS.search(self.process.text()):
            raise AssertionError(f"heatsink is broken:\n{self.process.text()}")

    def close(self):
        super().close()
        self.check()


class Redis(Server):
    """redis-server, without persistence unless the arguments say otherwise. cluster=True makes it
    a cluster of one node that owns every slot."""

    def __init__(self, *args, cluster=False, data=None):
        self.cluster = cluster
        super().__init__(*args, data=data)

    def start(self):
        return again_if_taken(self._start)

    def _start(self):
        ports = [ReservedPort(), ReservedPort()]
        self.port = ports[0].number
        command = ["redis-server", "--port", str(self.port), "--bind", "127.0.0.1",
                   "--dir", self.data, "--save", "", "--appendonly", "no"]
        if self.cluster:
            command += ["--cluster-enabled", "yes", "--cluster-port", str(ports[1].number)]
        self.process = Process(command + self.args)
        try:
            self.wait_log("Ready to accept connections")
            if self.cluster:
                self._own_all_slots()
        except BaseException:
            self.process.kill9()
            raise
        finally:
            for port in ports:
                port.release()
        return self

    def _own_all_slots(self):
        with Connection(self.port, guard_s=GUARD_S) as connection:
            if b"cluster_slots_assigned:16384" not in connection.call("CLUSTER", "INFO").raw:
                connection.call("CLUSTER", "ADDSLOTSRANGE", "0", "16383")
            self.wait_log("Cluster state changed: ok")
