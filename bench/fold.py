"""The fold section of `make bench`: requests for one hot key, folded and not.

  engine    heatsink in front of one redis-server, with `fold yes` and with `fold no` in turns, and clients directly
            at that server where that is useful
  embedded  the same with the embedded engine, and redis-server with the same durability

Each line shows the target next to the measured value. Figures of the server (its commands and its CPU time) are
redis-server's own, per request of a client. Each turn heats its key before it measures; this part is the same with and
without folding. The candidates change their order every round, and ratios are computed per round: the line shows the
median, and the range in brackets.
"""
import argparse
import os
import re
import sys
import threading

from candidates import ROOT, Heatsink, Redis
from proxy import Plain, median, ranged, ratios, turns, verdict

CLIENTS = 200
FIELDS = 1000  # size of the hash for costly reads
WARM_UP = argparse.Namespace(seconds=0.3)
VERIFIED = 200_000  # number of requests in the run with --verify
COMMANDS_MIN, CPU_MIN, COSTLY_MIN = 50, 20, 5
LATENCY_MAX, COLD_MAX = 1.05, 1.03
SYNC_CLIENTS = (50, 200)

INCR, COSTLY, READS, LATENCY = ("fold INCR one key", "fold HGETALL", "fold GET in flight",
                                "fold one client")
# Pipelines over several hot keys of one server, and of one hot key among cold ones.
PIPED_CLIENTS = 50
PIPED = {f"fold INCR {name}": args for name, args in {
    "4 keys P4": ("--keys", 4, "--pipeline", 4),
    "4 keys P16": ("--keys", 4, "--pipeline", 16),
    "90 % one key P4": ("--keys", 10_000, "--shape", "viral:0.9", "--pipeline", 4)}.items()}
COLD = {(engine, command): f"fold {engine} uniform {command.upper()} P16"
        for engine in ("engine", "embedded") for command in ("get", "set")}
EMBEDDED = "fold embedded INCR sync"
ROWS = [INCR, COSTLY, READS, LATENCY, *PIPED, *COLD.values(), EMBEDDED]


# ---- candidates ----

class Folding(Heatsink):
    """heatsink with `fold yes` or `fold no`, in front of an engine or with the embedded one."""

    def __init__(self, fold, workers, engine=None, sync="off"):
        super().__init__(sync)
        self.name = "folded" if fold else "unfolded"
        self.fold, self.workers, self.engine = fold, workers, engine

    def command(self, port):
        engine = ["--engine", self.engine] if self.engine else []
        return [*super().command(port), "--workers", str(self.workers), "--fold",
                "yes" if self.fold else "no", *engine]


def pair(workers, engine=None, sync="off"):
    return [Folding(fold, workers, engine, sync).start() for fold in (True, False)]


def ask(server, *words):
    """Sends a request; returns the first piece of the reply, which is the whole reply unless it is long."""
    with server.connect() as connection:
        connection.sendall(b"*%d\r\n" % len(words) + b"".join(
            b"$%d\r\n%s\r\n" % (len(word), word) for word in map(str.encode, words)))
        reply = connection.recv(1 << 20)
        while not reply.endswith(b"\r\n"):
            reply += connection.recv(1 << 20)
        return reply.decode("utf-8", "replace")


def info(server, section):
    """A section of INFO, {field: text}."""
    return dict(re.findall(r"^([a-z_0-9|]+):(.*?)\r?$", ask(server, "INFO", section), re.M))


def cpu_us(redis):
    """redis-server's own CPU time in µs, which is finer than the ticks of /proc."""
    fields = info(redis, "cpu")
    return 1e6 * (float(fields["used_cpu_user"]) + float(fields["used_cpu_sys"]))


def calls(redis, *names):
    """The number of calls of these commands at redis-server."""
    fields = info(redis, "commandstats")
    return sum(int(re.search(r"calls=(\d+)", fields.get(f"cmdstat_{name}", "calls=0")).group(1))
               for name in names)


class Counting:
    """A relay in front of redis-server that counts the largest number of GETs in flight. It is slow, but the count
    does not depend on speed."""

    def __init__(self, port):
        sys.path.append(os.path.join(ROOT, "tests", "lib"))
        from relay import Relay  # from tests/lib; needs python3-redis
        counting, lock = self, threading.Lock()
        self.under_way = self.most = self.total = 0

        class Pass:
            """The fault for each GET: counts its reply and passes it on."""
            asked = None

            @staticmethod
            def answered(link, reply):
                with lock:
                    counting.under_way -= 1
                link.ends[0].sendall(reply)

        class Counter(Relay):
            def take(self, link, args):
                if args[0].upper() != b"GET":
                    return super().take(link, args)
                with lock:
                    counting.total += 1
                    counting.under_way += 1
                    counting.most = max(counting.most, counting.under_way)
                return Pass

        self.relay = Counter(port)

    def close(self):
        self.relay.close()


# ---- rows ----

def storm(load, server, options, *args):
    return load.figures(server, "--connections", str(CLIENTS), "--duration",
                        f"{int(options.seconds * 1000)}ms", *map(str, args))


def one_key(load, server, command, options):
    return storm(load, server, options, "--command", command, "--keys", "1")


def warm_up(load, server, *args):
    storm(load, server, WARM_UP, *args)


def line(name, asked, measured, met):
    print(f"{name:30}{asked:44}{measured}: {verdict(met)}", flush=True)


def run_incr(load, redis, servers, options, saved):
    def measure(server):
        warm_up(load, server, "--command", "incr", "--keys", "1")
        before = calls(redis, "incr", "incrby"), cpu_us(redis), server.cpu_s()
        done = one_key(load, server, "incr", options)
        answered = done["answered"]
        return (answered / done["seconds"],
                (calls(redis, "incr", "incrby") - before[0]) / answered,
                (cpu_us(redis) - before[1]) / answered,
                (server.cpu_s() - before[2]) * 1e6 / answered)
    seen = turns([*servers, redis], options.rounds, measure)
    folded, unfolded, direct = (list(zip(*seen[name])) for name in ("folded", "unfolded", "direct"))
    checked = load.figures(servers[0], "--connections", str(CLIENTS), "--command", "incr",
                           "--keys", "1", "--prefix", "exact:", "--count", str(VERIFIED), "--verify")
    saved[INCR] = {"seen": seen, "verify": checked["verify"]}
    fewer = [1 / each for each in folded[1] if each]
    cpu, ops = ratios(unfolded[2], folded[2]), ratios(folded[0], unfolded[0])
    line(INCR, f"requests per engine command >= {COMMANDS_MIN}", ranged(fewer),
         median(fewer) >= COMMANDS_MIN)
    line("", f"engine's CPU per request / folded >= {CPU_MIN}",
         f"{ranged(cpu)}, {median(unfolded[2]):.2f} / {median(folded[2]):.3f} µs",
         bool(cpu) and median(cpu) >= CPU_MIN)
    line("", "requests a second x unfolded >= 1",
         f"{ranged(ops)}, {median(folded[0]):,.0f} / {median(unfolded[0]):,.0f}", median(ops) >= 1)
    print(f"{'':74}(heatsink's own CPU per request {median(folded[3]):.2f} / "
          f"{median(unfolded[3]):.2f} µs; without heatsink {median(direct[0]):,.0f} requests a second,\n"
          f"{'':74} {median(direct[2]):.2f} µs of the engine's CPU each, x folded "
          f"{ranged(ratios(direct[2], folded[2]))})", flush=True)
    line("", f"{VERIFIED:,} replies distinct and exact", f"{checked['verify']['failed']} were not",
         checked["verify"]["ok"])


def run_costly(load, redis, servers, options, saved):
    fields = [word for i in range(FIELDS) for word in (f"field:{i:06}", f"value:{i:06}")]
    ask(redis, "HSET", "big", *fields)

    def measure(server):
        warm_up(load, server, "--request", "HGETALL big")
        before = calls(redis, "hgetall")
        done = storm(load, server, options, "--request", "HGETALL big")
        return done["answered"] / done["seconds"], \
            (calls(redis, "hgetall") - before) / done["answered"]
    seen = turns(servers, options.rounds, measure)
    saved[COSTLY] = seen
    ops = ratios([ops for ops, _ in seen["folded"]], [ops for ops, _ in seen["unfolded"]])
    each = redis_us(redis, "hgetall")
    line(COSTLY, f"requests a second x unfolded >= {COSTLY_MIN}",
         f"{ranged(ops)}, {median([s[0] for s in seen['folded']]):,.0f} / "
         f"{median([s[0] for s in seen['unfolded']]):,.0f}, {each:.0f} µs each at the engine",
         median(ops) >= COSTLY_MIN)


def redis_us(redis, name):
    found = re.search(r"usec_per_call=([\d.]+)", info(redis, "commandstats")[f"cmdstat_{name}"])
    return float(found.group(1))


def run_reads(load, redis, options, saved):
    """Reads of an existing key, through the relay."""
    ask(redis, "SET", "key:000000000000", "value")
    counting = Counting(redis.port)
    server = Folding(True, options.workers, f"redis://127.0.0.1:{counting.relay.port}").start()
    try:
        warm_up(load, server, "--command", "get", "--keys", "1")
        counting.most = counting.total = 0
        answered = one_key(load, server, "get", options)["answered"]
    finally:
        server.close()
        counting.close()
    workers = options.workers or os.cpu_count()
    saved[READS] = {"most": counting.most, "workers": workers, "reads": counting.total,
                    "answered": answered}
    line(READS, f"engine reads under way <= {workers}, one a worker",
         f"{counting.most}, {answered / max(1, counting.total):.0f} requests a read",
         0 < counting.most <= workers)


def run_latency(load, servers, options, saved):
    def measure(server):
        return load.figures(server, "--command", "incr", "--keys", "1", "--connections", "1",
                            "--duration", f"{int(options.seconds * 1000)}ms")["all"]["p50_us"]
    seen = turns(servers, options.rounds, measure)
    relative = ratios(seen["folded"], seen["unfolded"])
    saved[LATENCY] = seen
    line(LATENCY, f"p50 x unfolded <= {LATENCY_MAX}",
         f"{ranged(relative)}, {median(seen['folded']):.1f} / {median(seen['unfolded']):.1f} µs",
         median(relative) <= LATENCY_MAX)


def run_piped(load, redis, servers, name, options, saved):
    args = ("--connections", PIPED_CLIENTS, "--command", "incr", *PIPED[name])

    def measure(server):
        warm_up(load, server, *args)
        before = cpu_us(redis), server.cpu_s()
        done = storm(load, server, options, *args)
        return (done["answered"] / done["seconds"], (cpu_us(redis) - before[0]) / done["answered"],
                (server.cpu_s() - before[1]) * 1e6 / done["answered"])
    seen = turns(servers, options.rounds, measure)
    saved[name] = seen
    folded, unfolded = (list(zip(*seen[each])) for each in ("folded", "unfolded"))
    ops = ratios(folded[0], unfolded[0])
    line(name, "requests a second x unfolded >= 1",
         f"{ranged(ops)}, {median(folded[0]):,.0f} / {median(unfolded[0]):,.0f}", median(ops) >= 1)
    print(f"{'':74}(CPU per request: engine {median(folded[1]):.2f} / {median(unfolded[1]):.2f} µs, "
          f"heatsink {median(folded[2]):.2f} / {median(unfolded[2]):.2f} µs)", flush=True)


def run_cold(load, servers, engine, command, options, saved):
    def measure(server):
        before = server.cpu_s()
        done, _ = load.run(server, command, options.keys, 16, seconds=options.seconds)
        return (server.cpu_s() - before) * 1e6 / done
    seen = turns(servers, options.rounds, measure)
    relative = ratios(seen["folded"], seen["unfolded"])
    saved[COLD[engine, command]] = seen
    line(COLD[engine, command], f"CPU x unfolded <= {COLD_MAX}",
         f"{ranged(relative)}, {median(seen['folded']):.2f} / {median(seen['unfolded']):.2f} µs",
         median(relative) <= COLD_MAX)


def run_embedded(load, options, saved):
    """Three candidates with sync always; the target is redis-server with appendfsync always."""
    redis = Redis("always")
    servers = [redis.start(), *pair(options.workers, sync="always")]
    fields = ("commits", "store_writes")

    def measure_with(clients):
        def measure(server):
            before = {} if server is redis else info(server, "stats")
            done = load.figures(server, "--command", "incr", "--keys", "1", "--connections",
                                str(clients), "--duration", f"{int(options.seconds * 1000)}ms")
            after = {} if server is redis else info(server, "stats")
            commits, writes = (int(after.get(field, 0)) - int(before.get(field, 0))
                               for field in fields)
            return done["answered"] / done["seconds"], commits, writes, done["answered"]
        return measure
    try:
        for clients in SYNC_CLIENTS:
            seen = turns(servers, options.rounds, measure_with(clients))
            saved[f"{EMBEDDED} {clients}"] = seen
            ops = {name: [result[0] for result in results] for name, results in seen.items()}
            relative = ratios(ops["folded"], ops["redis"])
            line(f"{EMBEDDED}, {clients}", "requests a second x redis-server's >= 1",
                 f"{ranged(relative)}, {median(ops['folded']):,.0f} folded, "
                 f"{median(ops['unfolded']):,.0f} unfolded, {median(ops['redis']):,.0f} redis",
                 median(relative) >= 1)
            _, commits, writes, answered = map(sum, zip(*seen["folded"]))
            each = writes / max(1, commits)
            line("", "store writes per commit <= 1",
                 f"{each:.2f}, with {answered / max(1, commits):.0f} increments", each <= 1.05)
    finally:
        for server in servers:
            server.close()


# ---- the section ----

def run_engine(load, options, wanted, saved):
    running = [Plain().start()]
    redis = running[0]
    try:
        servers = pair(options.workers, f"redis://127.0.0.1:{redis.port}")
        running += servers
        if wanted(INCR):
            run_incr(load, redis, servers, options, saved)
        if wanted(COSTLY):
            run_costly(load, redis, servers, options, saved)
        if wanted(READS):
            run_reads(load, redis, options, saved)
        if wanted(LATENCY):
            run_latency(load, servers, options, saved)
        for name in filter(wanted, PIPED):
            run_piped(load, redis, servers, name, options, saved)
        run_colds(load, servers, "engine", options, wanted, saved)
    finally:
        for server in reversed(running):
            server.close()


def run_colds(load, servers, engine, options, wanted, saved):
    rows = [command for command in ("get", "set") if wanted(COLD[engine, command])]
    if rows:
        for server in servers if engine == "embedded" else servers[:1]:
            load.fill(server, options.keys)
    for command in rows:
        run_cold(load, servers, engine, command, options, saved)


def run(load, options, wanted):
    """Prints the selected rows of this section; returns their figures."""
    saved = {}
    print(f"\nfold: {CLIENTS} clients, {options.workers or os.cpu_count()} workers\n"
          f"{'':30}{'target':44}measured", flush=True)
    if any(map(wanted, [INCR, COSTLY, READS, LATENCY, *PIPED] +
               [name for (engine, _), name in COLD.items() if engine == "engine"])):
        run_engine(load, options, wanted, saved)
    if any(wanted(name) for (engine, _), name in COLD.items() if engine == "embedded"):
        servers = pair(options.workers)
        try:
            run_colds(load, servers, "embedded", options, wanted, saved)
        finally:
            for server in servers:
                server.close()
    if wanted(EMBEDDED):
        run_embedded(load, options, saved)
    return saved
