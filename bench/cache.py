"""The cache section of `make bench`: cost and age of reads under the contract `cache`.

  direct      clients at one redis-server
  nutcracker  twemproxy in front of it, as a proxy without a cache
  heatsink    in front of it, with a rule that allows some staleness

The load sends requests of each key one after the other (`storm --ordered`), so a read has one right reply, the last
value written, and an old reply counts as a mismatch. Mismatches are printed with up to three texts; the run goes on.
The keys are written directly at the server before the run, and every run starts a new heatsink. The server's own
commandstats count the reads that reach it. The candidates change their order every round, and ratios are computed per
round: the line shows the median, and the range in brackets. Each line shows the target next to the measured value.

The ratio rows measure a worker's cache alone: its hit ratio and its cost (cache_ratio.c).
"""
import json
import os
import re
import socket
import subprocess
import threading
import time

from cache_stale import Seen, watch
from candidates import GUARD_S, HEATSINK, Heatsink, Null
from fold import ask, info, line
from heat import run_program
from proxy import Nutcracker, Plain, allow_files, median, nutcracker_path, ranged, ratios, turns

KEYS, OPERATIONS, WRITES, CLIENTS = 1_000, 100_000, 0.05, 32
SHAPES = {"uniform": 97.52, "80/20": 97.97, "99/1": 99.20, "flash": 99.13}  # reads to cut, in %
LATENCY_SHAPE, LATENCY_MAX = "99/1", 1.0
HOT_NULL_MAX, HOT_REDIS_MAX = 1.35, 1.0
STALE_MS, BEHIND_MAX_MS = 100, 5
RULE = f"* cache stale={STALE_MS}ms admit=all"
VALUE_BYTES = 100
READERS = 2
EXPIRY_CLIENTS, EXPIRY_MS = 1_000, 500
GAP_S = EXPIRY_MS / 2000  # reads further apart belong to different expiries
NEAR_S = 0.1  # a read this shortly before a key's end counts for its end

LOAD = {shape: f"cache load {shape}" for shape in SHAPES}
HOT, THROUGH, BEHIND, EXPIRY = ("cache hot GET P16", "cache write through", "cache write behind",
                                "cache expiry")
RATIO = "cache-ratio"
SERVED = [*LOAD.values(), HOT, THROUGH, BEHIND, EXPIRY]
ROWS = [*SERVED, RATIO]


class Cached(Heatsink):
    """heatsink in front of an engine, with rules."""

    def __init__(self, port, workers, *rules):
        super().__init__("off")
        self.engine, self.workers, self.rules = f"redis://127.0.0.1:{port}", workers, rules

    def command(self, port):
        rules = [word for rule in self.rules for word in ("--rule", rule)]
        return [*super().command(port), "--workers", str(self.workers), "--maxclients",
                str(EXPIRY_CLIENTS + 200), "--tcp-backlog", "1024", "--engine", self.engine, *rules]


# ---- load ----

def storm(server, *args):
    """Storm's JSON result; mismatches are accepted."""
    command = [HEATSINK, "storm", "--target", f"127.0.0.1:{server.port}", "--json", "--value-size",
               str(VALUE_BYTES), *map(str, args)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=GUARD_S)
    try:
        result = json.loads(done.stdout)
    except ValueError:
        raise SystemExit(f"{' '.join(command)}:\n{done.stderr}") from None
    if result["errors"] or result["lost"]:
        raise SystemExit(f"{server.name}: {result['errors']}, {result['lost']} lost")
    return result


def seed(redis, keys, prefix="key:"):
    """Empties the server, writes the keys, and resets its statistics."""
    ask(redis, "FLUSHALL")
    storm(redis, "--load", "--command", "get", "--keys", keys, "--prefix", prefix, "--count", 1)
    ask(redis, "CONFIG", "RESETSTAT")


def read_commands(redis):
    """The names of all read-only commands."""
    return set(re.findall(r"\$\d+\r\n(\S+)\r\n", ask(redis, "COMMAND", "LIST", "FILTERBY", "ACLCAT",
                                                     "read")))


def commands(redis):
    """{command: calls counted by redis-server}"""
    return {name.removeprefix("cmdstat_"): int(re.search(r"calls=(\d+)", text).group(1))
            for name, text in info(redis, "commandstats").items() if name.startswith("cmdstat_")}


def run_load(redis, shape, options, saved):
    reads = read_commands(redis)
    others = [Nutcracker([redis.port], [1]).start()] if nutcracker_path() else []
    ours = Cached(redis.port, options.workers, RULE)

    def measure(server):
        seed(redis, KEYS)
        if server is ours:
            ours.start()
        done = storm(server, "--ordered", "--verify", "--no-final", "--shape", shape, "--command", "set",
                     "--writes", WRITES, "--keys", KEYS, "--count", OPERATIONS, "--connections", CLIENTS)
        if server is ours:
            ours.stop()
        seen = commands(redis)
        return {"asked": done["reads"]["requests"], "gets": seen.get("get", 0), "commands": seen,
                "others": sum(count for name, count in seen.items() if name in reads - {"get"}),
                "mismatches": done["verify"]["failed"], "failures": done["verify"]["failures"],
                "p50_us": done["reads"]["p50_us"], "p99_us": done["reads"]["p99_us"],
                "seconds": done["seconds"]}
    try:
        seen = turns([redis, *others, ours], options.rounds, measure)
    finally:
        for server in [*others, ours]:
            server.close()
    saved[LOAD[shape]] = seen
    print_load(shape, seen)


def cut(runs, *names):
    """For each round, the per cent of the clients' reads that did not reach the server."""
    return [100 * (1 - sum(run[name] for name in names) / run["asked"]) for run in runs]


def print_load(shape, seen):
    runs = seen["heatsink"]
    gets, all_reads = cut(runs, "gets"), cut(runs, "gets", "others")
    each = ", ".join(f"{name} {median([run['gets'] for run in result]):,.0f}"
                     for name, result in seen.items())
    line(LOAD[shape], f"GETs at the server cut by > {SHAPES[shape]} %",
         f"{ranged(gets)} %; GETs there: {each}", median(gets) > SHAPES[shape])
    kinds = sorted({name for run in runs for name in run["commands"]} - {"config|resetstat", "info"})
    print(f"{'':74}(with other reads there, {median([run['others'] for run in runs]):,.0f}, cut by "
          f"{ranged(all_reads)} %; all commands of the last round: "
          + ", ".join(f"{name} {runs[-1]['commands'].get(name, 0)}" for name in kinds) + ")")
    wrong = {name: sum(run["mismatches"] for run in result) for name, result in seen.items()}
    line("", "mismatches 0", ", ".join(f"{name} {count}" for name, count in wrong.items()),
         wrong["heatsink"] == 0)
    for text in [text for run in runs for text in run["failures"]][:3]:
        print(f"{'':74}{text}")
    p99 = {name: [run["p99_us"] for run in result] for name, result in seen.items()}
    relative = ratios(p99["heatsink"], p99["direct"])
    measured = (f"{ranged(relative)}, p99 " + ", ".join(
        f"{name} {median(values):.0f}" for name, values in p99.items()) + " µs, p50 " + ", ".join(
        f"{name} {median([run['p50_us'] for run in result]):.0f}" for name, result in seen.items()))
    if shape == LATENCY_SHAPE:
        line("", f"p99 of reads x direct <= {LATENCY_MAX:.0f}", measured,
             median(relative) <= LATENCY_MAX)
    else:
        print(f"{'':30}{'p99 of reads x direct':44}{measured}", flush=True)


# ---- one hot key ----

def run_hot(load, redis, options, saved):
    """One hot key: heatsink against the null server with one thread, one worker against one thread, and as many
    threads as workers."""
    seed(redis, 1)
    workers = options.workers or os.cpu_count()
    ours, single = Cached(redis.port, workers, RULE), Cached(redis.port, 1, RULE)
    null, like = Null(VALUE_BYTES), Null(VALUE_BYTES, workers)
    single.name = "heatsink, 1 worker"
    started = [null, ours] if workers == 1 else [null, ours, single, like]
    try:
        for server in started:
            server.start()
        for server in started:
            load.run(server, "get", 1, 16, seconds=0.3)
        before = commands(redis).get("get", 0)

        def measure(server):
            cpu = server.cpu_s()
            done, seconds = load.run(server, "get", 1, 16, seconds=options.seconds)
            return (server.cpu_s() - cpu) * 1e6 / done, done / seconds, done
        seen = turns([*started, redis], options.rounds, measure)
        reached = commands(redis).get("get", 0) - before - sum(run[2] for run in seen["direct"])
    finally:
        for server in started:
            server.close()
    saved[HOT] = {"seen": seen, "reached": reached}
    pairs = [(ours, null, f"<= {HOT_NULL_MAX}"), (ours, redis, f"< {HOT_REDIS_MAX:.0f}")]
    if workers > 1:
        pairs += [(single, null, f"<= {HOT_NULL_MAX}"), (ours, like, f"<= {HOT_NULL_MAX}")]
    for number, (one, other, most) in enumerate(pairs):
        print_hot(HOT if number == 0 else "", one, other, most, seen)
    rates = ", ".join(f"{name} {median([run[1] for run in result]):,.0f}"
                      for name, result in seen.items())
    print(f"{'':74}(operations a second: {rates}; of heatsink's {reached} reached the server)")


def print_hot(name, one, other, most, seen):
    cpu = {server: [run[0] for run in seen[server.name]] for server in (one, other)}
    relative = ratios(cpu[one], cpu[other])
    bound = float(most.split()[1])
    met = median(relative) < bound if most.startswith("< ") else median(relative) <= bound
    who = one.name.removeprefix("heatsink").removeprefix(", ")
    line(name, f"CPU{f' ({who})' if who else ''} x {other.name} {most}",
         f"{ranged(relative)}, {median(cpu[one]):.3f} / {median(cpu[other]):.3f} µs", met)


# ---- staleness ----

def figures(ages):
    return (f"p50 {Seen.at(ages, 0.5):.2f}, p99 {Seen.at(ages, 0.99):.2f}, max {ages[-1]:.2f} ms")


def run_stale(redis, name, options, saved):
    seed(redis, 1)
    ours = Cached(redis.port, options.workers, RULE).start()
    through = name == THROUGH
    count, gap_s = (2_000, 0.001) if through else (1_000, 0.005)
    count //= 4 if options.quick else 1
    before = commands(redis).get("get", 0)
    try:
        seen = watch(ours.port if through else redis.port, ours.port, b"number", count, gap_s, READERS)
    finally:
        ours.close()
    reached = commands(redis).get("get", 0) - before
    saved[name] = {"writes": count, "reads": seen.reads, "stale": seen.stale, "reached": reached,
                   "ages_ms": seen.ages, "ages_at_most_ms": seen.most}
    said = f"{count:,} writes, {seen.reads:,} reads, {reached:,} of them reached the server"
    if through:
        line(name, "reads of an overwritten value 0", f"{seen.stale}; {said}", seen.stale == 0)
        return
    p99 = Seen.at(seen.ages, 0.99)
    line(name, f"old value answered for, p99 <= {BEHIND_MAX_MS} ms", figures(seen.ages),
         p99 <= BEHIND_MAX_MS)
    line("", f"never longer than stale={STALE_MS}ms", f"max {seen.ages[-1]:.2f} ms",
         seen.ages[-1] <= STALE_MS)
    print(f"{'':74}(at most {figures(seen.most)}; {seen.stale:,} old answers; {said})")


# ---- expiry ----

class Monitor:
    """The times at which redis-server ran GETs, by its MONITOR."""

    def __init__(self, redis):
        self.socket = socket.create_connection(("127.0.0.1", redis.port))
        self.socket.sendall(b"MONITOR\r\n")
        self.lines = self.socket.makefile("rb")
        self.lines.readline()  # +OK
        self.times = []
        self.thread = threading.Thread(target=self._listen)
        self.thread.start()

    def _listen(self):
        try:
            for text in self.lines:
                found = re.match(rb'\+(\d+\.\d+) \[.*?\] "GET"', text, re.I)
                if found:
                    self.times.append(float(found.group(1)))
        except OSError:
            pass

    def close(self):
        self.socket.shutdown(socket.SHUT_RDWR)
        self.thread.join()
        self.socket.close()

    def bursts(self):
        """The numbers of reads that came together, in order of time."""
        sizes, last = [], None
        for at in self.times:
            if last is None or at - last > GAP_S:
                sizes.append(0)
            sizes[-1] += 1
            last = at
        return sizes


def read_by_many(redis, rule, ends_s, seconds, options):
    """The reads that reached the server, and storm's result. Another storm reads the key first, so that connections to
    the server exist. The staleness bound is wide, because this row measures expiry."""
    seed(redis, 1)
    ours = Cached(redis.port, options.workers, f"* cache stale=1s admit=all {rule}").start()
    storm(ours, "--command", "get", "--keys", 1, "--duration", "300ms")
    monitor = Monitor(redis)
    if ends_s:
        ask(redis, "PEXPIREAT", "key:000000000000", str(int(ends_s * 1000)))
    try:
        done = storm(ours, "--command", "get", "--keys", 1, "--connections", EXPIRY_CLIENTS,
                     "--duration", f"{seconds}s")
    finally:
        ours.close()
        monitor.close()
    return monitor, done


def run_expiry(redis, options, saved):
    """A cache entry that expires by its rule repeatedly, and a key that expires once by its own TTL."""
    seconds = 2 if options.quick else 5
    monitor, done = read_by_many(redis, f"ttl={EXPIRY_MS}ms", None, seconds, options)
    sizes = monitor.bursts()
    saved[f"{EXPIRY} ttl"] = {"bursts": sizes, "answered": done["answered"]}
    line(EXPIRY, f"rule's ttl={EXPIRY_MS}ms: reads there each time 1",
         f"{max(sizes, default=0)} at most; {sum(sizes)} reads in {len(sizes)} times, "
         f"{done['answered']:,} requests", len(sizes) > 1 and max(sizes) == 1)

    ends_s = time.time() + 1 + seconds / 2
    monitor, done = read_by_many(redis, "negative-ttl=1m", ends_s, seconds, options)
    times = [at - ends_s for at in monitor.times if at > ends_s - NEAR_S]
    saved[f"{EXPIRY} own"] = {"seconds_from_the_end": times, "answered": done["answered"]}
    line("", "key's own: reads there 1",
         f"{len(times)}, at {', '.join(f'{1000 * at:+.1f}' for at in times)} ms, "
         f"{done['answered']:,} requests", len(times) == 1)


# ---- the section ----

def run_served(load, options, wanted, saved):
    allow_files()
    print(f"\ncache: rule {RULE}, {options.workers or os.cpu_count()} workers; load: {KEYS:,} keys, "
          f"{OPERATIONS:,} operations, {WRITES:.0%} SET, {CLIENTS} clients\n"
          f"{'':30}{'target':44}measured", flush=True)
    redis = Plain().start()
    try:
        for shape, name in LOAD.items():
            if wanted(name):
                run_load(redis, shape, options, saved)
        if wanted(HOT):
            run_hot(load, redis, options, saved)
        for name in (THROUGH, BEHIND):
            if wanted(name):
                run_stale(redis, name, options, saved)
        if wanted(EXPIRY):
            run_expiry(redis, options, saved)
    finally:
        redis.close()


def run(load, options, wanted):
    """Prints the selected rows of this section; returns their figures."""
    saved = {}
    if any(wanted(name) for name in SERVED):
        run_served(load, options, wanted, saved)
    if wanted(RATIO):
        print(f"\n{'a cache by itself':66}{'target':32}measured", flush=True)
        run_program("cache_ratio", saved)
    return saved
