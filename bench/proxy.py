"""The proxy section of `make bench`: heatsink in front of redis-server against nutcracker (Debian's twemproxy) in
front of the same servers.

  redis    one redis-server behind either proxy
  cluster  six nodes, three masters with a replica each

nutcracker does not know Redis Cluster. But with hash crc16, distribution modula, and weights equal to the sizes of the
masters' slot ranges (5461 + 5461 + 5462 = 16384), it computes the slot itself (crc16 mod 16384) and picks the slot's
owner. So as long as no slot moves it sends every key to its owner, and the comparison is fair. nutcracker also fills
the cluster: a key sent to a wrong node would give an error, which ends the run with status 1.

The section measures the proxy's CPU time per operation, without the time of the servers and of the load. The proxies
take turns in each round and change their order, and ratios are computed per round: the line shows the median, and the
range in brackets.
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
    """A row of load through a proxy, and its target: CPU per operation as a multiple of nutcracker's."""

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
    """redis-server without persistence."""
    name = "direct"

    def __init__(self):
        super().__init__("off")

    def command(self, port):
        return ["redis-server", "--port", str(port), "--dir", self.data, "--save", "",
                "--appendonly", "no"]


class Nutcracker(Server):
    """nutcracker in front of these ports; `weights` are their numbers of slots."""
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
        """Polls the port, because nutcracker does not log when it listens."""
        super().start()
        while True:
            try:
                self.connect().close()
                return self
            except ConnectionRefusedError:
                if self.child.poll() is not None:
                    raise SystemExit("nutcracker did not start:\n" + "\n".join(self.log)) from None


def nutcracker_path():
    """Debian installs it in /usr/sbin, which may not be in PATH."""
    return shutil.which("nutcracker") or shutil.which("nutcracker", path="/usr/sbin")


class Proxy(Heatsink):
    """heatsink in front of an engine; without an engine the embedded one, to try the section itself."""

    def __init__(self, engine, workers):
        super().__init__("off")
        self.engine, self.workers = engine, workers

    def command(self, port):
        engine = ["--engine", self.engine] if self.engine else []
        return [*super().command(port), "--workers", str(self.workers), "--maxclients",
                str(IDLE + FILES_SPARE), "--tcp-backlog", "1024", *engine]


class World:
    """All running processes. `candidates`: for each engine, the servers that take turns."""

    def __init__(self, options):
        sys.path.append(os.path.join(ROOT, "tests", "lib"))
        from cluster import Cluster  # from tests/lib; needs python3-redis
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
    """{name: [result of each round]}; each round begins with another candidate."""
    seen = {server.name: [] for server in candidates}
    for turn in range(rounds):
        first = turn % len(candidates)
        for server in candidates[first:] + candidates[:first]:
            seen[server.name].append(measure(server))
    return seen


def median(values):
    return statistics.median(values)


def ratios(ours, theirs):
    """The ratio of each round."""
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
    """Fills the cluster through nutcracker; a key at a wrong node would be an error and end the run."""
    for engine in world.candidates:
        load.fill(world.candidates[engine][0], options.proxy_keys)
        if options.stand_in:
            load.fill(world.heatsink(engine), options.proxy_keys)


# ---- latency ----

def run_latency(load, world, engine, options, saved):
    """One client, one request at a time. The latency added by a proxy is the difference to the direct connection; a
    Cluster's nodes answer as fast as the single server, so that is measured once."""
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
    """Raises RLIMIT_NOFILE to the hard limit, which children inherit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard


def open_idle(server, count):
    """Opens idle connections that have sent one request to the engine."""
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
    """{node: number of the server's connections to it}"""
    counts = {}
    for node in world.cluster.nodes:
        rows = node.call("CLIENT", "LIST").text.decode()
        ports = map(int, re.findall(r" addr=\S+:(\d+) ", rows))
        counts[node.name] = len(ports_of(server.child.pid) & set(ports))
    return counts


def run_many(world, options, saved):
    """The largest number of connections per node while a thousand clients send requests."""
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
    """Prints the selected rows of this section; returns their figures."""
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
