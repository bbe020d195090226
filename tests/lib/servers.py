"""tests/lib: the helpers that tests share. Front door of the folder for integration tests: real servers as processes on
free ports, in folders of their own, ended with the test.

    with Heatsink("--workers", "2") as server, Redis() as redis:
        server.client().set("a", "1")           # python3-redis
        server.raw().call("GET", "a").raw       # the bytes on the wire, see resp.py
        server.kill9()
        server.start()                          # the same data folder, a new port
        self.assertEqual(server.stop(), 0)

What is in the folder. The headers and .c files are for unit tests: *_world.h are fixtures in which the test plays the
engine, the servers or the cluster and single-steps the code under test, in one thread, with a simulated clock (only
fold_world.h needs neither engine nor clock); they may include internal headers of their module. The Python modules
are for integration tests; tools/run-tests puts the folder on PYTHONPATH. Servers: servers, cluster, relay (faults in
between), fake and heat (servers that answer from a script), tls, disks. Clients and terminals: resp, terminal,
job_shell. Comparisons: generate* and differential* (random sequences against Redis), simulated* (scripts against
Redis and the simulator). Checks: checks, cases, source_rules, counters. src/ and sim/ never include this folder.
Other users: fuzz/fuzz_fold.c includes fold_world.h, tests/preload/faults.c includes faults.h, and bench/ imports
cluster and relay.

What a helper must not do: use a fixed port, sleep for a fixed time, or end a process that it has not started. Ports
come from the kernel, waits are for a log line, a reply or the end of a process.

Which process runs what: each test module is one Python process; the servers are its child processes and share its
process group. A reader thread per child collects the output, so that no child blocks on a full pipe.

When a server hangs: a server that is not ready within GUARD_S (120 s) fails the test with its log and is killed; a
reply that does not come raises TimeoutError after the same time; a server that does not end in close() fails the test
and is killed. A test that hangs in another way is ended by run-tests after 900 s, with all processes of its group.
GUARD_S is long, because sanitizers, valgrind and busy machines are slow: a passing test never waits for it.

HEATSINK names the binary; HEATSINK_WRAP is a command in front of it ("valgrind -q"). One module is run alone with
`tools/run-tests test_NAME`.
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

STARTS = 5  # attempts to start a server whose port was taken meanwhile
TAKEN = re.compile("address already in use", re.I)

# heatsink logs this when it has reached the server, or the cluster, behind it.
ENGINE_MET = r" cluster: \d+ shards|: Redis \d"

# Output of a broken server, even if its replies were right.
ALARMS = re.compile(r"impossible state|Sanitizer|runtime error:|Assertion .* failed")


def note(said):
    """Prints a note about a problem of the test's environment that was overcome. The report of run-tests shows notes
    of passing tests."""
    print("\n" + textwrap.indent(said, "note: "), file=sys.stderr, flush=True)


def again_if_taken(start):
    """Runs start(), and repeats it if another program has taken the port."""
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
    """A free port, reserved until release(): bound with SO_REUSEADDR but not listening, so that no other program gets
    it and the intended server can still use it."""

    def __init__(self):
        self.socket = socket.socket()
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(("127.0.0.1", 0))
        self.number = self.socket.getsockname()[1]

    def release(self):
        self.socket.close()


class Process:
    """A child process; a thread reads its output line by line into `log`."""

    def __init__(self, command, env=None, cwd=None):
        self.log = []
        self.ended = False  # the output has ended
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
        """Waits for a line that matches `pattern`, earlier ones included; returns the match."""
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
        """Waits for the end of the process and of its output; returns the exit status."""
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
    """Base class of both servers: start, stop, clients, data folder."""

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
        """A resp.Connection, which keeps the bytes; closed with the server."""
        connection = Connection(self.port, guard_s=GUARD_S)
        self.clients.append(connection)
        return connection

    def rss_bytes(self):
        """The resident memory of the process."""
        with open(f"/proc/{self.pid}/status", encoding="ascii") as status:
            return int(re.search(r"VmRSS:\s+(\d+) kB", status.read()).group(1)) * 1024

    def stop(self):
        """Sends SIGTERM and waits for the end; returns the exit status."""
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
        """Ends the server if it still runs, and removes its folder unless the test gave one."""
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
    """heatsink serve with these arguments. start() after stop() or kill9() uses the same data, on another port unless
    same_port. HTTP is on a free port, `http_port`, unless an argument says otherwise. With --tls-port there is a
    `tls_port`, and a `port` only with --port as well (lib/tls.py)."""

    http_port = tls_port = None

    def start(self, same_port=False):
        return again_if_taken(lambda: self._start(same_port))

    def _start(self, same_port):
        port = self.port if same_port and self.port else 0
        wrap = shlex.split(os.environ.get("HEATSINK_WRAP", ""))
        self.process = Process([*wrap, heatsink_path(), "serve", "--port", str(port),
                                "--http", "0", "--data", self.data, *self.args])
        try:
            self.wait_log(" try: redis-cli ")  # the last line of a start
            self.port, self.tls_port, self.http_port = (
                int(found.group(1)) if (found := re.search(rf" {what} on \S+:(\d+)",
                                                           self.process.text())) else None
                for what in ("listening", "tls", "http"))
        except AssertionError:
            self.process.kill9()
            raise
        return self

    def wait_engine(self):
        """Waits until heatsink has reached the server, or the cluster, behind it. A start waits two seconds for that;
        later, commands are refused until it has."""
        self.wait_log(ENGINE_MET)
        return self

    def check(self):
        """Fails if the server has printed a sanitizer report or a failed assertion."""
        if ALARMS.search(self.process.text()):
            raise AssertionError(f"heatsink is broken:\n{self.process.text()}")

    def close(self):
        super().close()
        self.check()


class Redis(Server):
    """redis-server, without persistence unless the arguments say otherwise. cluster=True makes it a cluster of one
    node that owns every slot."""

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
