"""The proxy section of `make bench`: heatsink in front of redis-server against nutcracker (Debian's
twemproxy) in front of the very same servers.

  redis    one redis-server behind either proxy
  cluster  six nodes, three masters with a replica each

nutcracker knows no Cluster. But its crc16 and modula over servers whose weights are the sizes of
the masters' slot ranges come to the slot, exactly: 5461 + 5461 + 5462 = 16384, the low bits of the
same checksum. So as long as nothing moves it sends every key to its owner, and is a fair opponent
there. It fills the cluster, and a key that landed wrong would be an error and end the run.

Counted is the proxy's CPU time per operation, never that of the servers or of the load. The proxies
take turns in one round, who begins changes, and the ratio is taken round by round: the median, and
in brackets its range.
"""
import os
import re
import resource
import shutil
import socket
import statistics
import subprocess
import sys
import time

from candidates import HEATSINK, ROOT, Heatsink, Redis, Server

KEYS_MAX = 100_000
MASTERS = 3
IDLE, IDLE_MAX_BYTES = 10_000, 200 * 1000 * 1000
MANY, NODE_CONNECTIONS_MAX = 1_000, 8
LATENCY_MAX = 1.5
FILES_SPARE = 200
SAMPLE_S = 0.05


class Row:
    """Load through a proxy, and the most CPU per operation in multiples of nutcracker's."""

    def __init__(self, engine, command, pipeline, cpu_max):
        self.engine, self.command, self.pipeline, self.cpu_max = engine, command, pipeline, cpu_max
        self.name = f"proxy {engine} {command.upper()} P{pipeline}"


LOAD = [Row(engine, command, pipeline, cpu_max) for engine in ("redis", "cluster")
        for command in ("get", "set") for pipeline, cpu_max in ((16, 0.5), (1, 0.9))]
LATENCY = ["proxy redis latency", "proxy cluster latency"]
IDLE_ROW, MANY_ROW = "proxy idle connections", "proxy connections per node"
ROWS = [row.name for row in LOAD] + LATENCY + [IDLE_ROW, MANY_ROW]


# ---- candidates ----

class Plain(Redis):
    """redis-server that keeps nothing on disk."""
    name = "direct"

    def __init__(self):
        super().__init__("off")

    def command(self, port):
        return ["redis-server", "--port", str(port), "--dir", self.data, "--save", "",
                "--appendonly", "no"]


class Nutcracker(Server):
    """In front of these ports; `weights` are their shares of the slots."""
    name, ready = "nutcracker", "started on pid"

    def __init__(self, ports, weights):
        super().__init__()
        self.ports, self.weights = ports, weights

    def command(self, port):
        servers = "".join(f"    - 127.0.0.1:{server}:{weight} server{i}\n" for i, (server, weight)
                          in enumerate(zip(self.ports, self.weights)))
        with open(os.path.join(self.data, "conf.yml"), "w", encoding="ascii") as file:
            file.write(f"bench:\n  listen: 127.0.0.1:{port}\n  redis: true\n  hash: crc16\n"
                       f"  distribution: modula\n  preconnect: true\n  servers:\n{servers}")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            stats = free.getsockname()[1]
        return [nutcracker_path(), "-c", os.path.join(self.data, "conf.yml"), "-o", "/dev/stderr",
                "-p", os.path.join(self.data, "pid"), "-a", "127.0.0.1", "-s", str(stats)]

    def start(self):
        """It does not say when it listens."""
        super().start()
        while True:
            try:
                self.connect().close()
                return self
            except ConnectionRefusedError:
                if self.child.poll() is not None:
                    raise SystemExit("nutcracker did not start:\n" + "\n".join(self.log)) from None


def nutcracker_path():
    """Debian keeps it where only root looks."""
    return shutil.which("nutcracker") or shutil.which("nutcracker", path="/usr/sbin")


class Proxy(Heatsink):
    """heatsink in front of an engine; without one its own stands in, to try the section itself."""

    def __init__(self, engine, workers):
        super().__init__("off")
        self.engine, self.workers = engine, workers

    def command(self, port):
        engine = ["--engine", self.engine] if self.engine else []
        return [*super().command(port), "--workers", str(self.workers), "--maxclients",
                str(IDLE + FILES_SPARE), "--tcp-backlog", "1024", *engine]


class World:
    """Everything that runs. `candidates` has for each engine those that take turns."""

    def __init__(self, options):
        sys.path.append(os.path.join(ROOT, "tests", "lib"))
        from cluster import Cluster  # the tests' own; it wants python3-redis
        self.running = []
        try:
            direct = self._start(Plain())
            self.cluster = Cluster(masters=MASTERS, replicas=1)
            self.running.append(self.cluster)
            masters = self.cluster.nodes[:MASTERS]
            weights = [len(node.myself().slots) for node in masters]
            urls = {"redis": f"redis://127.0.0.1:{direct.port}", "cluster": self.cluster.url()}
            engines = {name: None if options.stand_in else url for name, url in urls.items()}
            self.candidates = {
                "redis": [direct, self._start(Nutcracker([direct.port], [1])),
                          self._start(Proxy(engines["redis"], options.workers))],
                "cluster": [self._start(Nutcracker([node.port for node in masters], weights)),
                            self._start(Proxy(engines["cluster"], options.workers))]}
        except BaseException:
            self.close()
            raise

    def _start(self, server):
        self.running.append(server)
        return server.start()

    def close(self):
        for server in reversed(self.running):
            server.close()

    def heatsink(self, engine):
        return self.candidates[engine][-1]


# ---- turns ----

def turns(candidates, rounds, measure):
    """{name: [measured, a round each]}; who begins changes every round."""
    seen = {server.name: [] for server in candidates}
    for turn in range(rounds):
        first = turn % len(candidates)
        for server in candidates[first:] + candidates[:first]:
            seen[server.name].append(measure(server))
    return seen


def median(values):
    return statistics.median(values)


def ratios(ours, theirs):
    """Round by round."""
    return [one / other for one, other in zip(ours, theirs) if other > 0]


def ranged(values):
    if not values:
        return "-"
    return f"{median(values):.2f} ({min(values):.2f} to {max(values):.2f})"


def verdict(met):
    return "met" if met else "MISSED"


# ---- load ----

HEAD = (f"{'':24}{'operations/s':>33}{'proxy CPU µs/operation':>28}   heatsink / nutcracker\n"
        f"{'':24}{'direct':>11}{'nutcracker':>11}{'heatsink':>11}{'nutcracker':>17}"
        f"{'heatsink':>11}   {'CPU':24}{'target'}")


def run_row(load, world, row, options, saved):
    def measure(server):
        before = server.cpu_s()
        done, seconds = load.run(server, row.command, options.proxy_keys, row.pipeline,
                                 seconds=options.seconds)
        return done / seconds, (server.cpu_s() - before) * 1e6 / done
    seen = turns(world.candidates[row.engine], options.rounds, measure)
    ops, cpu = ({name: [result[column] for result in results] for name, results in seen.items()}
                for column in (0, 1))
    relative = ratios(cpu["heatsink"], cpu["nutcracker"])
    saved[row.name] = {"operations_per_second": ops, "cpu_us": cpu, "cpu_ratio": relative}
    line = f"{row.name:24}"
    for name in ("direct", "nutcracker", "heatsink"):
        line += f"{median(ops[name]):>11,.0f}" if name in ops else f"{'-':>11}"
    line += f"{median(cpu['nutcracker']):>17.2f}{median(cpu['heatsink']):>11.2f}   "
    print(f"{line}{ranged(relative):24}<= {row.cpu_max}: "
          f"{verdict(median(relative) <= row.cpu_max)}", flush=True)


def fill(load, world, options):
    """The cluster through nutcracker: its errors would tell that a key landed wrong."""
    for engine in world.candidates:
        load.fill(world.candidates[engine][0], options.proxy_keys)
        if options.stand_in:
            load.fill(world.heatsink(engine), options.proxy_keys)


# ---- latency ----

def run_latency(load, world, engine, options, saved):
    """One client, one request at a time. What a proxy adds is what is left without the direct
    way's; a cluster's nodes answer directly as the lone server does."""
    direct = world.candidates["redis"][0]
    proxies = world.candidates[engine][-2:]

    def measure(server):
        all_ = load.figures(server, "--command", "get", "--keys", str(options.proxy_keys),
                            "--connections", "1", "--duration",
                            f"{int(options.seconds * 1000)}ms")["all"]
        return all_["p50_us"], all_["p99_us"]
    seen = turns([direct, *proxies], options.rounds, measure)
    added = {proxy.name: {name: median([result[column] - base[column] for result, base
                                        in zip(seen[proxy.name], seen["direct"])])
                          for column, name in ((0, "p50"), (1, "p99"))} for proxy in proxies}
    saved[f"proxy {engine} latency"] = {"us": seen, "added_us": added}
    relative = added["heatsink"]["p99"] / added["nutcracker"]["p99"] \
        if added["nutcracker"]["p99"] > 0 else None
    words = [f"direct p50 {median([r[0] for r in seen['direct']]):.0f} "
             f"p99 {median([r[1] for r in seen['direct']]):.0f}"]
    words += [f"{name} + {value['p50']:.0f} + {value['p99']:.0f}" for name, value in added.items()]
    words.append("p99 added: " + ("nothing to compare with" if relative is None else
                                  f"{relative:.2f} x nutcracker's, <= {LATENCY_MAX}: "
                                  f"{verdict(relative <= LATENCY_MAX)}"))
    print(f"{f'proxy {engine} latency, µs':32}" + "; ".join(words), flush=True)


# ---- connections ----

def allow_files():
    """As many as the system lets us; children inherit it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard


def open_idle(server, count):
    """Connections that have asked the engine once."""
    idle = []
    for i in range(count):
        connection = server.connect()
        connection.sendall(b"*2\r\n$3\r\nGET\r\n$16\r\nkey:%012d\r\n" % i)
        idle.append(connection)
    for connection in idle:
        if not connection.recv(1 << 12).startswith(b"$"):
            raise SystemExit(f"{server.name} refused an idle connection")
    return idle


def run_idle(world, options, saved):
    count = min(IDLE, options.files - FILES_SPARE)
    sizes = {}
    for server in world.candidates["cluster"]:
        before, idle = server.memory()[1], open_idle(server, count)
        sizes[server.name] = (before, server.memory()[1])
        for connection in idle:
            connection.close()
    saved[IDLE_ROW] = {"connections": count, "rss_bytes": sizes}
    words = [f"{name} {before / 1e6:.0f} -> {after / 1e6:.0f} MB"
             for name, (before, after) in sizes.items()]
    asked = f"< {IDLE_MAX_BYTES / 1e6:.0f} MB: {verdict(sizes['heatsink'][1] < IDLE_MAX_BYTES)}" \
        if count == IDLE else f"no verdict: {options.files} open files are all this system allows"
    print(f"{f'proxy, {count:,} idle connections':32}{'; '.join(words)}; {asked}", flush=True)


def ports_of(pid):
    """Local ports of the process's TCP connections."""
    inodes = set()
    for name in os.listdir(f"/proc/{pid}/fd"):
        try:
            inodes.update(re.findall(r"socket:\[(\d+)\]", os.readlink(f"/proc/{pid}/fd/{name}")))
        except FileNotFoundError:
            pass
    with open("/proc/net/tcp", encoding="ascii") as file:
        rows = [line.split() for line in file.readlines()[1:]]
    return {int(row[1].partition(":")[2], 16) for row in rows if row[9] in inodes}


def connections_per_node(world, server):
    """{node: how many connections of the server's it has}"""
    counts = {}
    for node in world.cluster.nodes:
        rows = node.call("CLIENT", "LIST").text.decode()
        ports = map(int, re.findall(r" addr=\S+:(\d+) ", rows))
        counts[node.name] = len(ports_of(server.child.pid) & set(ports))
    return counts


def run_many(world, options, saved):
    """Looked at all the time while a thousand clients ask; the most there ever were."""
    most = {}
    for server in world.candidates["cluster"]:
        counts = {node.name: 0 for node in world.cluster.nodes}
        storm = [HEATSINK, "storm", "--target", f"127.0.0.1:{server.port}", "--command", "mixed",
                 "--keys", str(options.proxy_keys), "--prefix", "many:", "--connections",
                 str(MANY), "--duration", f"{int(options.seconds * 1000)}ms"]
        with subprocess.Popen(storm, stdout=subprocess.DEVNULL) as child:
            while child.poll() is None:
                for name, count in connections_per_node(world, server).items():
                    counts[name] = max(counts[name], count)
                time.sleep(SAMPLE_S)
        most[server.name] = counts
    saved[MANY_ROW] = most
    words = [f"{name} {', '.join(map(str, counts.values()))}" for name, counts in most.items()]
    met = 0 < max(most["heatsink"].values()) <= NODE_CONNECTIONS_MAX
    print(f"{f'proxy, {MANY:,} clients':32}connections per node: {'; '.join(words)}; "
          f"<= {NODE_CONNECTIONS_MAX}: {verdict(met)}", flush=True)


# ---- the section ----

def run(load, options, wanted):
    """Prints the section's rows that are wanted and returns their figures."""
    if not nutcracker_path():
        print("\nproxy: nutcracker is missing; tools/install-packages bench finds it")
        return {}
    saved = {}
    options.files = allow_files()
    options.proxy_keys = min(options.keys, KEYS_MAX)
    world = World(options)
    try:
        fill(load, world, options)
        print(f"\nproxy: {options.proxy_keys:,} keys, {options.workers or os.cpu_count()} workers"
              + (", EMBEDDED ENGINE INSTEAD OF A PROXY" if options.stand_in else "") + f"\n{HEAD}")
        for row in LOAD:
            if wanted(row.name):
                run_row(load, world, row, options, saved)
        for engine, name in zip(world.candidates, LATENCY):
            if wanted(name):
                run_latency(load, world, engine, options, saved)
        if wanted(IDLE_ROW):
            run_idle(world, options, saved)
        if wanted(MANY_ROW):
            run_many(world, options, saved)
    finally:
        world.close()
    return saved
