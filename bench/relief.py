"""The relief section of `make bench`: what one hot key costs redis-server, the table in the README.

Clients use one key, in turns: at redis-server itself, through nutcracker (a plain proxy), and through heatsink without a
rule (folding alone) and with `cache stale=100ms`. All four use the same redis-server, one process on one core.

One read is costly: HGETALL of a hash with 1,000 fields.

Figures are redis-server's own, per request of a client: the commands that it ran (`total_commands_processed`) and its CPU
time (`used_cpu_user` and `used_cpu_sys`). heatsink's own CPU time per request stands beside them, since relief for the
server is no relief if it costs more elsewhere. Medians over the rounds; every round begins with another candidate.
"""
import os

from candidates import Heatsink
from fold import ask, cpu_us, info
from proxy import Nutcracker, Plain, median, nutcracker_path, turns

CLIENTS = 100
WARM_UP_MS = 500
FIELDS = 1000  # of the costly hash
ROWS = {"relief hot read": ("--command", "get"),
        "relief hot HGETALL": ("--request", "HGETALL big"),
        "relief hot read, 5 % writes": ("--command", "mixed", "--writes", "0.05"),
        "relief hot counter": ("--command", "incr"),
        "relief hot SET": ("--command", "set")}


class Front(Heatsink):
    """heatsink in front of the server, with a rule for all keys or without."""

    def __init__(self, name, engine, workers, rule=None):
        super().__init__("off")
        self.name, self.engine, self.workers, self.rule = name, engine, workers, rule

    def command(self, port):
        return [*super().command(port), "--engine", self.engine, "--workers", str(self.workers),
                *(["--rule", self.rule] if self.rule else [])]


def commands(redis):
    return int(info(redis, "stats")["total_commands_processed"])


def measure(load, redis, server, options, name):
    def storm(duration_ms):
        return load.figures(server, "--keys", "1", "--prefix", name.replace(" ", "-"), "--connections",
                            str(CLIENTS), "--duration", f"{duration_ms}ms", *ROWS[name])
    storm(WARM_UP_MS)
    before = commands(redis), cpu_us(redis), server.cpu_s()
    done = storm(int(options.seconds * 1000))
    answered = done["answered"]
    return ((commands(redis) - before[0]) / answered, (cpu_us(redis) - before[1]) / answered,
            (server.cpu_s() - before[2]) * 1e6 / answered, answered / done["seconds"])


def run(load, options, wanted):
    """Prints the rows that are wanted and returns their figures."""
    redis, saved = Plain().start(), {}
    url, workers = f"redis://127.0.0.1:{redis.port}", options.workers or os.cpu_count()
    fronts = [Front("heatsink", url, workers), Front("with a rule", url, workers, "* cache stale=100ms")]
    if nutcracker_path():
        fronts.append(Nutcracker([redis.port], [1]))
    servers = [redis]
    print(f"\nrelief: one key, {CLIENTS} clients, per request of a client\n{'':30}{'candidate':14}"
          f"{'server commands':>16}{'server CPU, us':>16}{'proxy CPU, us':>16}{'requests/s':>13}", flush=True)
    try:
        servers += [front.start() for front in fronts]
        for name in filter(wanted, ROWS):
            ask(redis, "FLUSHALL")
            ask(redis, "HSET", "big", *(f"{kind}:{i:06}" for i in range(FIELDS) for kind in ("field", "value")))
            seen = turns(servers, options.rounds, lambda server: measure(load, redis, server, options, name))
            saved[name] = seen
            for server in servers:
                ran, cpu, proxy, ops = (median(column) for column in zip(*seen[server.name]))
                proxy_text = "-" if server is redis else f"{proxy:.2f}"
                print(f"{name if server is redis else '':30}{server.name:14}{ran:16.4f}{cpu:16.3f}"
                      f"{proxy_text:>16}{ops:13,.0f}", flush=True)
    finally:
        for server in reversed(servers):
            server.close()
    return saved
