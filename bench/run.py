"""`make bench`: prints one table in which all candidates take turns in one run. It is not part of `make test`.

  null      answers a constant and parses nothing: the upper bound of this machine
  redis     redis-server with the same durability
  heatsink  the server of this repository

Further sections follow, a module each: heat (what detection costs, finds and misses), rules (finding a key's rule),
fold (one hot key, folded and not), relief (what one hot key costs redis-server), cache (reads under a staleness
bound), proxy (heatsink against nutcracker, in front of redis-server and of a Cluster).

How to read it. Absolute numbers drift on a shared machine, so the rows that compare operations per second, CPU time or
latency measure the candidates in short turns, one after the other, in several rounds, and show medians; brackets show
the range of ratios over the rounds. Rows about other values are measured once: time to start, memory, staleness,
expiry, connections per node. Compare the server's CPU time per operation and its ratio to the others in the same row,
never numbers of two runs. Where a row has a target, the line ends with "met" or "MISSED".

This process starts the candidates and `heatsink storm`, the load, as child processes on free ports and ends them; the
C programs in this folder are single-threaded child processes, except null.c. A MISSED target does not change the exit
status, which is 0. A wrong value in the cache section is counted, shown and MISSED, and the run goes on; a wrong
reply in the fold section (--verify) stops the run with status 1. So does an error reply or a lost request in any
section, a server that does not start, or a load that does not end within GUARD_S (300 s). Two rows do not look at
errors of the load: "live" of heat and "connections per node" of proxy.

Run one section or row with ARGS="--rows fold" (--help lists the options). Nothing is saved unless --out names a file.
The folder may use internal headers (heat/internal.h, cli/storm.h) and tests/lib/cluster.py and relay.py; nothing
includes the folder.
"""
import argparse
import csv
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile

import cache
import fold
import heat
import proxy
import relief
import rules
from candidates import GUARD_S, HEATSINK, NULL, Heatsink, Null, Redis, first_answer_s

VALUE_BYTES = 100
CLIENTS = 50
MIB = 1 << 20


class Row:
    """One row of load. `keys`: 1 for one hot key, None for all keys. Targets, as multiples of redis-server's values:
    cpu_max per operation, ops_min per second."""

    def __init__(self, command, keys, pipeline, sync, cpu_max=None, ops_min=None):
        self.command, self.keys, self.pipeline, self.sync = command, keys, pipeline, sync
        self.cpu_max, self.ops_min = cpu_max, ops_min
        self.name = (f"{command.upper()} {'one key' if keys == 1 else 'uniform'} P{pipeline}"
                     + (" sync" if sync == "always" else ""))

    def verdict(self, cpu, ops):
        if self.cpu_max:
            return f"CPU <= {self.cpu_max} redis: {'met' if cpu <= self.cpu_max else 'MISSED'}"
        if self.ops_min:
            return f"ops >= {self.ops_min} redis: {'met' if ops >= self.ops_min else 'MISSED'}"
        return ""


ROWS = [
    Row("get", None, 1, "off", cpu_max=1.1),
    Row("get", None, 16, "off", cpu_max=1.5),
    Row("get", 1, 1, "off"),
    Row("get", 1, 16, "off"),
    Row("set", None, 1, "off"),
    Row("set", None, 16, "off"),
    Row("set", 1, 1, "off"),
    Row("set", 1, 16, "off"),
    Row("set", None, 1, "always", ops_min=1.0),
    Row("set", None, 16, "always"),
    Row("set", 1, 1, "always"),
]

# Rows that measure no load, by their names for --rows.
START, IDLE, LEVEL = "start", "idle connection", "memory level"


# ---- load ----

class Storm:
    """Load by heatsink storm."""
    name = "heatsink storm"

    def figures(self, server, *args):
        """Storm's JSON result; later arguments override. Errors or lost requests end the benchmark."""
        command = [HEATSINK, "storm", "--target", f"127.0.0.1:{server.port}", "--json",
                   "--connections", str(CLIENTS), "--value-size", str(VALUE_BYTES), *args]
        done = subprocess.run(command, capture_output=True, text=True, timeout=GUARD_S)
        if done.returncode != 0:
            raise SystemExit(f"{' '.join(command)}:\n{done.stderr}")
        result = json.loads(done.stdout)
        if result["errors"] or result["lost"]:
            raise SystemExit(f"{server.name}: {result['errors']}, {result['lost']} lost")
        return result

    def fill(self, server, keys):
        self.figures(server, "--load", "--command", "get", "--keys", str(keys), "--count", "1")

    def run(self, server, command, keys, pipeline, seconds=None, count=None):
        """Number of operations, and seconds."""
        limit = ["--count", str(count)] if count else ["--duration", f"{int(seconds * 1000)}ms"]
        result = self.figures(server, "--command", command, "--keys", str(keys), "--pipeline",
                              str(pipeline), *limit)
        return result["answered"], result["seconds"]


class RedisBenchmark:
    """Load by redis-benchmark (--load). It runs a number of requests, not a time, so the number is estimated from the
    pipeline depth."""
    name = "redis-benchmark"

    def _run(self, server, count, pipeline, keys, *words):
        command = ["redis-benchmark", "-p", str(server.port), "-c", str(CLIENTS), "-n", str(count),
                   "-P", str(pipeline), "-r", str(keys), "-d", str(VALUE_BYTES), "--csv", *words]
        done = subprocess.run(command, capture_output=True, text=True, timeout=GUARD_S, check=True)
        per_second = float(list(csv.reader(done.stdout.splitlines()))[-1][1])
        return count, count / per_second

    def fill(self, server, keys):
        value = "x" * VALUE_BYTES
        feed = b"".join(b"SET key:%012d %s\r\n" % (i, value.encode()) for i in range(keys))
        subprocess.run(["redis-cli", "-p", str(server.port), "--pipe"], input=feed,
                       stdout=subprocess.DEVNULL, timeout=GUARD_S, check=True)

    def run(self, server, command, keys, pipeline, seconds=None, count=None):
        count = count or int(seconds * (300000 if pipeline > 1 else 50000))
        words = ["get", "key:__rand_int__"] if command == "get" else \
                ["set", "key:__rand_int__", "x" * VALUE_BYTES]
        return self._run(server, count, pipeline, keys, *words)


# ---- rows of load ----

def measure(load, server, row, options):
    before = server.cpu_s()
    done, seconds = load.run(server, row.command, row.keys or options.keys, row.pipeline,
                             seconds=options.seconds)
    return done / seconds, (server.cpu_s() - before) * 1e6 / done


def measure_row(load, servers, row, options):
    """{name: (operations per second, CPU µs per operation)}; each round begins with another candidate."""
    seen = {server.name: [] for server in servers}
    for turn in range(options.rounds):
        first = turn % len(servers)
        for server in servers[first:] + servers[:first]:
            seen[server.name].append(measure(load, server, row, options))
    return {name: tuple(statistics.median(column) for column in zip(*results))
            for name, results in seen.items()}


HEAD = (f"{'':21}{'operations/s':>22}{'server CPU µs/operation':>40}{'heatsink CPU':>19}"
        f"{'ops':>9}\n"
        f"{'':21}{'null':>11}{'redis':>11}{'heatsink':>11}   {'null':>9}{'redis':>9}"
        f"{'heatsink':>9}   {'x redis':>8}{'x null':>8}{'x redis':>9}   target")


def ratio(result, one, other, column):
    if one not in result or other not in result or not result[other][column]:
        return None
    return result[one][column] / result[other][column]


def show(number, form, width):
    return f"{'-':>{width}}" if number is None else f"{number:>{width}{form}}"


def print_row(row, result):
    line = f"{row.name:21}"
    for column, form, width in ((0, ",.0f", 11), (1, ".2f", 9)):
        for name in ("null", "redis", "heatsink"):
            line += show(result[name][column] if name in result else None, form, width)
        line += "   "
    cpu, ops = ratio(result, "heatsink", "redis", 1), ratio(result, "heatsink", "redis", 0)
    line += show(cpu, ".2f", 8) + show(ratio(result, "heatsink", "null", 1), ".2f", 8)
    line += show(ops, ".2f", 9) + "   "
    if cpu is not None:
        line += row.verdict(cpu, ops)
    print(line.rstrip(), flush=True)


# ---- rows without load ----

def idle_connection_bytes(server, connections):
    """Private memory per idle connection that has sent one request."""
    with server.connect() as warm:  # excludes the one-time cost of the first connection
        warm.sendall(b"PING\r\n")
        warm.recv(64)
    before, _ = server.memory()
    idle = []
    for _ in range(connections):
        connection = server.connect()
        connection.sendall(b"*1\r\n$4\r\nPING\r\n")
        connection.recv(64)
        idle.append(connection)
    after, _ = server.memory()
    for connection in idle:
        connection.close()
    return max(0, after - before) / connections


def memory_growth(load, server, options):
    """Private memory after a tenth of the requests, and after all of them."""
    sizes = []
    for share in (0.1, 0.9):
        for command in ("set", "get"):
            load.run(server, command, options.keys, 16, count=int(options.requests * share / 2))
        sizes.append(server.memory()[0])
    return sizes


def fact(name, values, target):
    print(f"{name:38}" + "".join(f"{who:>9} {value:<16}" for who, value in values) + target,
          flush=True)


def print_idle(servers, options, saved):
    values = {server.name: idle_connection_bytes(server, options.idle) for server in servers}
    saved["idle_connection_bytes"] = values
    ours = values.get("heatsink")
    fact("idle connection", [(who, f"{value / 1024:.1f} KiB") for who, value in values.items()],
         "" if ours is None else f"<= 64 KiB: {'met' if ours <= 65536 else 'MISSED'}")


def print_level(load, servers, options, saved):
    values = {server.name: memory_growth(load, server, options) for server in servers}
    saved["own_memory_bytes"] = values
    ours = values.get("heatsink")
    level = ours and ours[1] - ours[0] <= max(4 * MIB, ours[0] // 20)
    fact(f"own memory over {options.requests:,} requests",
         [(who, f"{a / MIB:.0f} -> {b / MIB:.0f} MiB") for who, (a, b) in values.items()],
         "" if ours is None else f"level: {'met' if level else 'MISSED'}")


def restart(servers, sync):
    """Restarts every server with its data: {name: seconds until it answers}."""
    seconds = {}
    for server in servers:
        server.stop()
        server.sync = sync
        seconds[server.name] = first_answer_s(server)
    return seconds


def print_start(values, options, saved):
    saved["start_s"] = values
    ours = values.get("heatsink")
    fact(f"start with {options.keys:,} keys",
         [(who, f"{value:.2f} s") for who, value in values.items()],
         "" if ours is None else f"<= 1 s: {'met' if ours <= 1 else 'MISSED'}")


# ---- the run ----

def wanted(options, name):
    return not options.rows or any(word.lower() in name.lower()
                                   for word in options.rows.split(","))


def run_rows(load, servers, sync, options, saved):
    for row in ROWS:
        if row.sync != sync or not wanted(options, row.name):
            continue
        nulls = [Null(VALUE_BYTES if row.command == "get" else 0).start()] \
            if "null" in options.candidates else []
        try:
            result = measure_row(load, nulls + servers, row, options)
        finally:
            for null in nulls:
                null.close()
        saved["rows"][row.name] = result
        print_row(row, result)


def run(load, servers, options):
    saved = {"rows": {}, "load": load.name}
    for server in servers:
        server.start()
        load.fill(server, options.keys)
    print(HEAD)
    run_rows(load, servers, "off", options, saved)
    starts = restart(servers, "always")
    run_rows(load, servers, "always", options, saved)
    print()
    if wanted(options, START):
        print_start(starts, options, saved)
    if wanted(options, IDLE):
        print_idle(servers, options, saved)
    if wanted(options, LEVEL):
        restart(servers, "off")  # the fill of ten million requests runs without sync
        print_level(load, servers, options, saved)
    return saved


def read_options():
    parser = argparse.ArgumentParser(description="Compare null, redis-server and heatsink.")
    parser.add_argument("--quick", action="store_true",
                        help="100,000 keys, shorter turns, fewer requests")
    parser.add_argument("--rows", help="only rows whose name has one of these words: "
                        "'GET,start', or just 'heat', 'rules', 'fold', 'relief', 'cache' or 'proxy'")
    parser.add_argument("--candidates", default="null,redis,heatsink")
    parser.add_argument("--load", choices=("storm", "redis-benchmark"), default="storm")
    parser.add_argument("--trace", help="real requests for the heat section: key numbers of 4 "
                        "bytes, the highest first, or that in .xz")
    parser.add_argument("--workers", type=int, default=0,
                        help="of heatsink as a proxy; 0: one per core")
    parser.add_argument("--stand-in", action="store_true", help="in the proxy section, heatsink's "
                        "own engine instead of the servers behind it: to try the section itself")
    parser.add_argument("--out", help="write the figures as JSON to this file")
    parser.add_argument("--keys", type=int)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, help="of one turn")
    options = parser.parse_args()
    options.candidates = options.candidates.split(",")
    options.keys = options.keys or (100_000 if options.quick else 1_000_000)
    options.seconds = options.seconds or (0.5 if options.quick else 2.0)
    options.requests = 500_000 if options.quick else 10_000_000
    options.idle = 200 if options.quick else 1000
    options.heat_rounds, options.heat_seconds = (4, 0.5) if options.quick else (12, 1.0)
    return options


def main():
    options = read_options()
    load = Storm()
    for name, path in (("null", NULL), ("heatsink", HEATSINK)):
        if name in options.candidates and not os.access(path, os.X_OK):
            sys.exit(f"{path} is missing: make bench builds it")
    if options.load == "redis-benchmark" or not os.access(HEATSINK, os.X_OK):
        load = RedisBenchmark()
    if "redis" in options.candidates and not shutil.which("redis-server"):
        sys.exit("redis-server is missing: make bench finds it")
    kinds = {"redis": Redis, "heatsink": Heatsink}
    servers = [kinds[name]("off") for name in options.candidates if name in kinds]
    print(f"load by {load.name}: {CLIENTS} connections, {options.keys:,} keys, values of "
          f"{VALUE_BYTES} bytes, medians of {options.rounds} rounds of {options.seconds} s; "
          f"data in {tempfile.gettempdir()}\n"
          "without 'sync' in its name a row survives a killed process, with it a power cut\n")
    saved = {}
    try:
        if any(wanted(options, name) for name in [row.name for row in ROWS] + [START, IDLE, LEVEL]):
            saved = run(load, servers, options)
    finally:
        for server in servers:
            server.close()
    if "heatsink" in options.candidates and any(wanted(options, name) for name in heat.ROWS):
        saved["heat"] = heat.run(load, options, lambda name: wanted(options, name))
    if "heatsink" in options.candidates and any(wanted(options, name) for name in rules.ROWS):
        saved["rules"] = rules.run()
    if "heatsink" in options.candidates and any(wanted(options, name) for name in fold.ROWS):
        saved["fold"] = fold.run(Storm(), options, lambda name: wanted(options, name))
    if "heatsink" in options.candidates and any(wanted(options, name) for name in relief.ROWS):
        saved["relief"] = relief.run(Storm(), options, lambda name: wanted(options, name))
    if "heatsink" in options.candidates and any(wanted(options, name) for name in cache.ROWS):
        saved["cache"] = cache.run(Storm(), options, lambda name: wanted(options, name))
    if "heatsink" in options.candidates and any(wanted(options, name) for name in proxy.ROWS):
        saved["proxy"] = proxy.run(Storm(), options, lambda name: wanted(options, name))
    if options.out:
        with open(options.out, "w", encoding="utf-8") as out:
            json.dump(saved, out, indent=2)


if __name__ == "__main__":
    main()
