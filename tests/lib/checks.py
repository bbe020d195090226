"""Checks shared by several integration tests: waiting for a condition, a server's memory, files on disk, and a small
disk made for one test.
"""

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
    """Polls until the condition holds; fails the test after GUARD_S."""
    guard = time.monotonic() + GUARD_S
    while not condition():
        test.assertLess(time.monotonic(), guard, "never happened: " + what)
        time.sleep(POLL_S)  # polling without a pause would take processor time from the awaited process


def wait_learned(test, server):
    """Waits until a heatsink in front of servers knows their commands; its start waits two seconds only."""
    with resp.Connection(server.port) as connection:
        wait_for(test, "the servers' commands are known",
                 lambda: not connection.call("COMMAND", "INFO", "lpush").items[0].is_null)


def start_waiting(test, why, *args):
    """Starts a heatsink in front of unusable servers; returns it and its log line that matches `why`. The log has
    the first reason only: if that is a server that was too slow to answer, heatsink is started again."""
    guard = time.monotonic() + GUARD_S
    while True:
        server = servers.Heatsink(*args)
        test.addCleanup(server.close)
        line = server.wait_log(": retrying$").string
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
    """The server's heap in bytes, without the mapped store, whose pages come and go."""
    with open("/proc/%d/status" % server.pid, encoding="ascii") as status:
        return int(re.search(r"RssAnon:\s+(\d+) kB", status.read()).group(1)) * KIB


def is_sanitized():
    """True if the server under test is built with a sanitizer, which is slower and needs more memory."""
    with open(servers.heatsink_path(), "rb") as binary:
        return bool(re.search(rb"__(asan|tsan|msan)_init", binary.read()))


def memory_slack():
    """Factor for memory limits: sanitizers retain freed memory for a while."""
    return 32 if is_sanitized() else 1


def tree(folder):
    """The bytes of every file below a folder, by path."""
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
    """A context: servers started inside see a new tmpfs at `folder`, mounted in a namespace that ends with the
    server. Other processes reach it through /proc/PID/root."""
    namespace = "unshare -m" if os.geteuid() == 0 else "unshare -Urm"
    wrap = "%s sh -c 'mount -t tmpfs -o size=%s%s none %s && exec \"$@\"' sh %s" % (
        namespace, size, options, folder, os.environ.get("HEATSINK_WRAP", ""))
    with mock.patch.dict(os.environ, {"HEATSINK_WRAP": wrap}):
        yield
