"""The heat section of `make bench`: what detection costs, what it finds, and how soon.

  cost      nanoseconds per access, and memory, of the heat tables alone (bench/heat.c)
  accuracy  recall, bounds, and large values among small ones, in simulated time (bench/heat_accuracy.c)
  delay     how soon a key that becomes hot is shown, in simulated time (bench/heat_delay.c)
  off, on   CPU per operation of two builds of the server side by side, one without detection
  live      a running server under load, and a client that suddenly requests one key

The C programs print lines of "what | target | measured"; this module aligns them.
"""
import glob
import json
import lzma
import os
import shutil
import statistics
import subprocess
import tempfile
import threading
import time

from candidates import GUARD_S, HEATSINK, ROOT, Heatsink

PROGRAMS = os.path.join(os.path.dirname(HEATSINK), "bench")
OFF = os.environ.get("HEATSINK_HEAT_OFF")  # the server built with -DHS_HEAT_OFF
# A trace of real requests, used if the file exists beside the repository.
TRACE = os.path.join(os.path.dirname(ROOT), "shared", "data", "web07.trace.xz")
ROWS = ["heat cost", "heat accuracy", "heat delay", "heat off and on", "heat live"]
CPU_MAX = 1.03
JUMP_KEY = b"jump:000000000001"
JUMP_BATCH = 200
LIVE_S = 5


def show(line, saved):
    what, asked, measured = (word.strip() for word in line.split("|"))
    saved[what] = measured
    print(f"{what:66}{asked:32}{measured}", flush=True)


def run_program(name, saved, *args):
    path = os.path.join(PROGRAMS, name)
    with subprocess.Popen([path, *args], stdout=subprocess.PIPE, text=True) as program:
        for line in program.stdout:
            show(line, saved)
    if program.returncode != 0:
        raise SystemExit(f"{path} failed: {program.returncode}")


def run_accuracy(trace, saved):
    if not trace and os.path.exists(TRACE):
        trace = TRACE
    if not trace:
        run_program("heat_accuracy", saved)
        return
    with tempfile.NamedTemporaryFile() as numbers:
        with (lzma.open if trace.endswith(".xz") else open)(trace, "rb") as file:
            numbers.write(file.read())
        numbers.flush()
        run_program("heat_accuracy", saved, numbers.name)


# ---- two builds of the server ----

class HeatOff(Heatsink):
    """The server built without detection."""
    name = "heat off"

    def command(self, port):
        return [OFF, *super().command(port)[1:]]


def cpu_s(server):
    """CPU time of all threads, in nanoseconds resolution: clock ticks are too coarse for a difference of one per
    cent."""
    total = 0
    for path in glob.glob(f"/proc/{server.child.pid}/task/*/schedstat"):
        with open(path, encoding="ascii") as stat:
            total += int(stat.read().split()[0])
    return total / 1e9


WARM_S = 0.3


def cpu_per_operation(load, server, options):
    """CPU per operation of a new process. Each measurement uses a new one, because the random layout of its memory has
    more influence than the difference to be measured."""
    server.start()
    try:
        load.run(server, "get", options.keys, 16, seconds=WARM_S)
        before = cpu_s(server)
        done, _ = load.run(server, "get", options.keys, 16, seconds=options.heat_seconds)
        return (cpu_s(server) - before) * 1e6 / done
    finally:
        server.stop()


def run_off_and_on(load, options, saved):
    """Both builds with the same data, one after the other, in alternating order. Two processes of one build differ by
    several per cent, so the row shows medians of many rounds."""
    if not OFF or not os.access(OFF, os.X_OK):
        print("two builds: HEATSINK_HEAT_OFF names no program; make bench builds it")
        return
    off, on = HeatOff("off"), Heatsink("off")
    shutil.rmtree(off.data)
    off.data = on.data
    cpus = {off: [], on: []}
    try:
        on.start()
        load.fill(on, options.keys)
        on.stop()
        for turn in range(options.heat_rounds):
            for server in (off, on) if turn % 2 == 0 else (on, off):
                cpus[server].append(cpu_per_operation(load, server, options))
    finally:
        on.close()
    median = {server: statistics.median(cpus[server]) for server in cpus}
    ratio = median[on] / median[off]
    verdict = "met" if ratio <= CPU_MAX else "MISSED"
    spread = "; ".join(f"{server.name} {min(cpus[server]):.3f} to {max(cpus[server]):.3f}"
                       for server in cpus)
    show(f"GET uniform P16, detection on against off, {options.heat_rounds} rounds | "
         f"CPU <= {CPU_MAX} | {ratio:.3f} ({median[off]:.3f} -> {median[on]:.3f} us/operation; "
         f"{spread}): {verdict}", saved)


# ---- a live server ----

def ask(connection, request):
    """Sends an inline request and a PING; returns the bytes before the reply to the PING."""
    connection.sendall(request + b"\r\nPING\r\n")
    reply = b""
    while not reply.endswith(b"+PONG\r\n"):
        more = connection.recv(1 << 16)
        if not more:
            raise SystemExit("heatsink closed the connection")
        reply += more
    return reply


class Jumper(threading.Thread):
    """Requests one key as fast as it can, from `begin` on."""

    def __init__(self, server):
        super().__init__(daemon=True)
        self.connection = server.connect()
        self.batch = b"GET %s\r\n" % JUMP_KEY * JUMP_BATCH
        self.begin, self.done, self.stopped = None, 0, False

    def run(self):
        self.begin = time.monotonic()
        while not self.stopped:
            self.connection.sendall(self.batch)
            answered = 0
            while answered < JUMP_BATCH:  # the reply to each GET is $-1
                answered += self.connection.recv(1 << 16).count(b"$")
            self.done += JUMP_BATCH


def wait_for(connection, shown, limit_s):
    """Seconds until HEAT TOP lists the key (or stops listing it); None: not within the limit."""
    begin = time.monotonic()
    while time.monotonic() - begin < limit_s:
        if (JUMP_KEY in ask(connection, b"HEAT TOP COUNT 10 WINDOW short")) == shown:
            return time.monotonic() - begin
    return None


def run_live(options, saved):
    server = Heatsink("off")
    storm = None
    try:
        server.start()
        storm = subprocess.Popen(
            [HEATSINK, "storm", "--target", f"127.0.0.1:{server.port}", "--command", "get",
             "--shape", "zipf:0.99", "--keys", str(options.keys), "--pipeline", "16",
             "--duration", f"{LIVE_S}s", "--json"], stdout=subprocess.PIPE, text=True)
        with server.connect() as connection:
            if ask(connection, b"HEAT TOP").startswith(b"-"):
                print("live: this build has no HEAT TOP")
                return
            time.sleep(1.5)  # until the load's own hot keys fill the windows
            jumper = Jumper(server)
            jumper.start()
            shown_s = wait_for(connection, True, 2)
            time.sleep(0.5)
            per_second = jumper.done / (time.monotonic() - jumper.begin)
            jumper.stopped = True
            jumper.join()
            gone_s = wait_for(connection, False, 2)
        others = json.loads(storm.communicate(timeout=GUARD_S)[0])["all"]["per_second"]
        show(f"live: a client jumps on one key | | {per_second:,.0f}/s of it beside "
             f"{others:,.0f}/s Zipf 0.99: in HEAT TOP after {milliseconds(shown_s)}, out of it "
             f"{milliseconds(gone_s)} after it stopped", saved)
    finally:
        if storm and storm.poll() is None:
            storm.terminate()
            storm.wait()
        server.close()


def milliseconds(seconds):
    return "never" if seconds is None else f"{seconds * 1e3:.0f} ms"


def run(load, options, wanted):
    """Prints the selected rows of this section; returns their figures."""
    saved = {}
    print(f"\n{'heat':66}{'target':32}measured")
    parts = (lambda: run_program("heat", saved), lambda: run_accuracy(options.trace, saved),
             lambda: run_program("heat_delay", saved),
             lambda: run_off_and_on(load, options, saved), lambda: run_live(options, saved))
    for name, part in zip(ROWS, parts):
        if wanted(name):
            part()
    return saved
