"""What several tests look at: conditions that come true, a server's memory, files on disk, and
disks of a test's own."""

import contextlib
import os
import re
import time
from unittest import mock

import resp
import servers

GUARD_S = float(servers.GUARD_S)
POLL_S = 0.002
KIB, MIB = 1024, 1024 * 1024


def wait_for(test, what, condition):
    """Asks until the condition holds. Only a test that would hang forever sees the guard."""
    guard = time.monotonic() + GUARD_S
    while not condition():
        test.assertLess(time.monotonic(), guard, "never happened: " + what)
        time.sleep(POLL_S)  # asking without a pause takes the processor from what is waited for


def wait_learned(test, server):
    """Until a heatsink in front of servers knows their commands. Its start waits two seconds for that."""
    with resp.Connection(server.port) as connection:
        wait_for(test, "the servers' commands are known",
                 lambda: not connection.call("COMMAND", "INFO", "lpush").items[0].is_null)


def start_waiting(test, why, *args):
    """A heatsink in front of servers that are of no use to it, for the reason `why`, and the line of its log
    that says so. The log has the first reason only: where that is a server which was too slow to say
    anything, it is started again."""
    guard = time.monotonic() + GUARD_S
    while True:
        server = servers.Heatsink(*args)
        test.addCleanup(server.close)
        line = server.wait_log(": waiting$").string
        if re.search(why, line) or "in time" not in line or time.monotonic() > guard:
            test.assertRegex(line, why)
            return server, line
        servers.note(f"a server was slow, and heatsink is started again: {line}")
        server.close()


def client_rows(connection, *args):
    """CLIENT LIST as dictionaries."""
    text = connection.call("CLIENT", "LIST", *args).text.decode()
    return [dict(field.partition("=")[::2] for field in line.split(" "))
            for line in text.splitlines()]


def heap_bytes(server):
    """Memory that is the server's own: the mapped store may come and go as it likes."""
    with open("/proc/%d/status" % server.pid, encoding="ascii") as status:
        return int(re.search(r"RssAnon:\s+(\d+) kB", status.read()).group(1)) * KIB


def is_sanitized():
    """Whether the server under test is built with a sanitizer: slower, and larger."""
    with open(servers.heatsink_path(), "rb") as binary:
        return bool(re.search(rb"__(asan|tsan|msan)_init", binary.read()))


def memory_slack():
    """Sanitizers keep freed memory for a while: by how much margins are wider there."""
    return 32 if is_sanitized() else 1


def tree(folder):
    """Every file below a folder with its bytes."""
    found = {}
    for where, folders, files in os.walk(folder):
        for name in folders:
            found[os.path.join(where, name)] = None
        for name in files:
            with open(os.path.join(where, name), "rb") as file:
                found[os.path.join(where, name)] = file.read()
    return found


@contextlib.contextmanager
def own_disk(folder, size, options=""):
    """Servers started inside see a tmpfs of their own at `folder`: a mount in a namespace that
    ends with the server. Others reach it through /proc/PID/root."""
    namespace = "unshare -m" if os.geteuid() == 0 else "unshare -Urm"
    wrap = "%s sh -c 'mount -t tmpfs -o size=%s%s none %s && exec \"$@\"' sh %s" % (
        namespace, size, options, folder, os.environ.get("HEATSINK_WRAP", ""))
    with mock.patch.dict(os.environ, {"HEATSINK_WRAP": wrap}):
        yield
