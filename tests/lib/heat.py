"""A fake heatsink that answers HEAT from a script, for testing programs that show heat.

    with FakeHeat(hot_key()) as server:         # RESP3; resp=2 speaks RESP2 and has no HELLO
        ... server.port, server.asked ...

A scene is the data of one answer: rows of partitions (the median is added), keys, prefixes and slots, as dicts of
fields. The golden frames in tests/integration/golden are made of the scenes here.
"""
import contextlib
import statistics
import threading

from fake import FakeServer

UNKNOWN = "-ERR unknown command '%s', with args beginning with: \r\n"
NOAUTH = b"-NOAUTH Authentication required.\r\n"


def encode(value, resp):
    """A reply as heatsink writes it: real numbers are doubles in RESP3 and texts in RESP2; maps are flat arrays in
    RESP2."""
    if isinstance(value, dict):
        parts = [encode(part, resp) for pair in value.items() for part in pair]
        head = b"%%%d\r\n" % len(value) if resp == 3 else b"*%d\r\n" % (2 * len(value))
        return head + b"".join(parts)
    if isinstance(value, (list, tuple)):
        return b"*%d\r\n" % len(value) + b"".join(encode(part, resp) for part in value)
    if isinstance(value, int):
        return b":%d\r\n" % value
    if isinstance(value, float):
        text = b"%.17g" % value
        return b",%s\r\n" % text if resp == 3 else b"$%d\r\n%s\r\n" % (len(text), text)
    if isinstance(value, str):
        value = value.encode()
    return b"$%d\r\n%s\r\n" % (len(value), value)


class FakeHeat(FakeServer):
    """`asked`: all requests so far; wait_asked() waits for the next one that matches."""

    def __init__(self, scene, resp=3, password=None, heat=True, mischief=None, port=0):
        self.scene, self.resp, self.password, self.heat = scene, resp, password, heat
        self.asked = []
        self.change = threading.Condition()
        self.open = set()
        super().__init__(mischief, port)

    def hang_up(self):
        """Closes all connections; new ones are accepted."""
        with self.lock:
            for connection in self.open:
                with contextlib.suppress(OSError):  # the client has closed it already
                    connection.shutdown(2)
            self.open.clear()

    def wait_asked(self, *words, since=0, guard_s=120):
        """Waits for a request that begins with these words; returns its number, from `since` on."""
        wanted = [word.encode() for word in words]

        def find():
            return next((number for number, args in enumerate(self.asked[since:], since)
                         if args[:len(wanted)] == wanted), None)
        with self.change:
            if not self.change.wait_for(lambda: find() is not None, guard_s):
                raise AssertionError(f"{words} was not asked: {self.asked[since:]}")
            return find()

    def wait_silent(self, silent_s):
        """Waits until no request has come for silent_s seconds."""
        with self.change:
            asked = -1
            while asked != len(self.asked):
                asked = len(self.asked)
                self.change.wait_for(lambda: len(self.asked) > asked, silent_s)

    def answer(self, connection, args):
        with self.change:
            self.asked.append(args)
            self.change.notify_all()
        with self.lock:
            self.requests += 1
            self.open.add(connection.connection)
            if self.mischief:
                reply = self.mischief(self, connection, self.requests, args)
                if reply is not None:
                    return reply
            return self.reply(connection, args)

    def reply(self, connection, args):
        name = args[0].upper()
        if name == b"AUTH":
            if self.password is None:
                return (b"-ERR AUTH <password> called without any password configured for the "
                        b"default user. Are you sure your configuration is correct?\r\n")
            connection.known = args[1] == self.password.encode()
            return b"+OK\r\n" if connection.known else b"-WRONGPASS invalid pair.\r\n"
        if self.password is not None and not getattr(connection, "known", False):
            return NOAUTH
        if name == b"HELLO" and self.resp == 3:
            return encode({"server": "redis", "proto": 3, "modules": []}, 3)
        if name == b"INFO":
            text = "# Server\r\nredis_version:7.0.15\r\n"
            if self.heat:
                text += (f"heatsink_version:{self.scene['version']}\r\n"
                         f"uptime_in_seconds:{self.scene['uptime']}\r\n")
            return encode(text, self.resp)
        if name == b"HEAT" and self.heat:
            return encode(self.rows(args), self.resp)
        return (UNKNOWN % args[0].decode()).encode()

    def rows(self, args):
        what = args[1].upper().decode()
        if what == "PARTITIONS":
            return self.scene["partitions"]
        rows = self.scene[{"TOP": "keys", "PREFIXES": "prefixes", "SLOTS": "slots"}[what]]
        options = {args[i].upper(): args[i + 1] for i in range(2, len(args) - 1, 2)}
        by = {b"ops": "ops_low", b"latency": "p99_us"}.get(options[b"BY"],
                                                          options[b"BY"].decode())
        rows = sorted(rows, key=lambda row: -row[by])
        if b"PREFIX" in options:
            rows = [row for row in rows if row["key"].startswith(options[b"PREFIX"])]
        return rows[:int(options[b"COUNT"])]


# ---- scenes ----


def partition(number, ops, writes=0.1, p99_us=300.0, queued=0, top_key=b"", share=0.0, errors=0.0):
    return {"id": str(number), "address": f"127.0.0.1:{7000 + number}", "state": "ok", "ops": float(ops),
            "reads": ops * (1 - writes), "writes": float(ops * writes), "bytes": ops * 120.0,
            "load": 1.0, "inflight": queued // 2, "queued": queued, "p50_us": p99_us / 4,
            "p99_us": p99_us, "errors": errors, "commit_p99_us": 900.0,
            "memory": 64_000_000 + number, "slots": f"{number * 2048}-{number * 2048 + 2047}",
            "top_key": top_key, "top_key_share": share, "cpu": ops / 1_000_000,
            "clients": 12, "replicas": 1, "replica_lag": 1, "replica_lag_bytes": 140,
            "slots_cpu": ops / 1_250_000, "net_in": ops * 50, "net_out": ops * 70,
            "reason": ""}


def with_median(rows):
    """Adds each row's load, and the median of all partitions as the last row."""
    mean = sum(row["ops"] for row in rows) / len(rows)
    for row in rows:
        row["load"] = row["ops"] / mean if mean else 0.0
    numbers = [name for name, value in rows[0].items() if isinstance(value, (int, float))]
    median = {name: "" for name in rows[0]}
    median.update({name: float(statistics.median(row[name] for row in rows)) for name in numbers})
    return [*rows, {**median, "id": "median"}]


def key(name, ops, sure=1.0, writes=0.1, size=120, p99_us=300.0, share=0.01, part=0, slot=0):
    return {"key": name, "ops": float(ops), "ops_low": ops * sure, "reads": ops * (1 - writes),
            "writes": float(ops * writes), "bytes": float(ops * size), "p99_us": p99_us,
            "share": share, "partition": part, "slot": slot}


def prefix(name, ops, share, **more):
    row = key(name, ops, share=share, **more)
    del row["partition"], row["slot"], row["key"]
    return {"prefix": name, **row}


def slot(number, ops, share, part):
    row = key(b"", ops, share=share, part=part, slot=number)
    del row["key"]
    return row


def scene(partitions, keys=(), prefixes=(), slots=(), version="0.1.0", uptime=273_900):
    return {"partitions": with_median(partitions), "keys": list(keys), "prefixes": list(prefixes),
            "slots": list(slots), "version": version, "uptime": uptime}


def calm():
    ops = [101_000, 98_700, 100_300, 99_100, 102_400, 97_900, 100_800, 99_600]
    return scene([partition(i, rate, top_key=b"user:%d" % (100 + i), share=0.0123)
                  for i, rate in enumerate(ops)],
                 [key(b"user:%d" % (100 + i), rate * 0.0123, sure=0.9, share=0.0123, part=i,
                      slot=i * 2048 + 77) for i, rate in enumerate(ops)],
                 [prefix(b"user:", 640_000, 0.8), prefix(b"cart:", 96_000, 0.12)],
                 [slot(2125, 2200, 0.022, 1), slot(77, 1300, 0.013, 0)])


def hot_key():
    ops = [101_000, 98_700, 100_300, 612_000, 102_400, 97_900, 100_800, 99_600]
    parts = [partition(i, rate, top_key=b"user:%d" % (100 + i), share=0.0123)
             for i, rate in enumerate(ops)]
    parts[3].update(p99_us=18_400.0, queued=412, inflight=64, top_key=b"product:8841:stock",
                    top_key_share=0.83, errors=12.0)
    keys = [key(b"user:%d" % (100 + i), rate * 0.0123, sure=0.88, share=0.0123, part=i,
                slot=i * 2048 + 77) for i, rate in enumerate(ops) if i != 3]
    keys += [key(b"product:8841:stock", 508_000, sure=0.991, writes=0.97, size=64, p99_us=19_200.0,
                 share=0.83, part=3, slot=7419),
             key(b"product:8841:title", 51_000, sure=0.97, writes=0.0, size=240, p99_us=950.0,
                 share=0.083, part=3, slot=7002),
             key(b"report:2024:export", 12, writes=0.0, size=4_800_000, p99_us=220_000.0,
                 share=0.0001, part=5, slot=11_300)]
    return scene(parts, keys,
                 [prefix(b"product:", 575_000, 0.44, writes=0.9),
                  prefix(b"product:8841:", 561_000, 0.43, writes=0.9),
                  prefix(b"user:", 610_000, 0.465)],
                 [slot(7419, 508_000, 0.83, 3), slot(7002, 51_000, 0.083, 3)])


def many_partitions():
    parts = [partition(i, 10_000 + (i * 37) % 100 * 20, top_key=b"session:%04d" % i, share=0.02)
             for i in range(100)]
    parts[63].update(ops=41_000.0, p99_us=2300.0, queued=17, top_key=b"session:9999",
                     top_key_share=0.71)
    parts[7].update(ops=25_500.0, p99_us=1100.0, queued=3, top_key=b"tenant:acme:cfg",
                    top_key_share=0.31)
    return scene(parts, [key(b"session:9999", 29_110, sure=0.99, share=0.71, part=63, slot=10_400),
                         key(b"tenant:acme:cfg", 7905, sure=0.98, writes=0.0, share=0.31, part=7,
                             slot=1200)],
                 [prefix(b"session:", 990_000, 0.9)], version="1.12.3", uptime=59)


ODD_KEYS = [b"two\nlines\ttab", b"quote\"back\\slash", b"invalid \xff\xc3( utf-8", b"esc\x1b[2Jape",
            "日本語のとても長いキー:ユーザー:プロフィール".encode(), "é e\u0301 \u200b zero".encode(),
            "right\u202eleft".encode(), "emoji😀:x".encode(),
            b"long:" + b"0123456789" * 30 + b":end", b"", b" leading and trailing "]


def odd_keys():
    return scene([partition(0, 5000, top_key=ODD_KEYS[4], share=0.3),
                  partition(1, 4000, top_key=ODD_KEYS[0], share=0.2)],
                 [key(name, 1000 - 50 * i, share=0.05, part=i % 2, slot=i)
                  for i, name in enumerate(ODD_KEYS)],
                 [prefix(b"bad\xfe:", 900, 0.1)])


def empty():
    parts = [partition(i, 0, p99_us=0.0) for i in range(4)]
    for row in parts:
        row["commit_p99_us"] = 0.0
    return scene(parts, uptime=3)


def sparse():
    """A server of another version: some fields are missing, some are unknown."""
    return {"version": "9.0", "uptime": 90_061,
            "partitions": [{"id": "0", "ops": 100.0, "colour": "blue", "nested": [1, {"a": 2}]},
                           {"id": "1", "ops": 300.0, "shape": {"round": 1}}],
            "keys": [{"ops_low": 1.0, "future": ["x"], "key": b"k", "ops": 250.0}],
            "prefixes": [], "slots": []}
