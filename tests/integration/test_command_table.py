"""Goal: heatsink's command table describes its commands as Redis 7.0 does.

Method: the names come from heatsink's own COMMAND LIST, so a new command is compared automatically. COMMAND INFO
must have the same shape and the same facts in RESP2 and RESP3: arity, flags, key positions, ACL categories, tips,
key specifications. COMMAND DOCS must have the same shape with heatsink's own texts. redis-cli, which reads these
tables at an interactive start, must come up.
"""
import os
import pty
import select
import subprocess
import termios
import unittest

from servers import GUARD_S, Heatsink, Redis

SANITIZERS = ("address",)  # one client at a time: no data race is possible

# Commands without a row in Redis 7.0: heatsink's own, newer ones, or arguments there.
OURS = {"client|no-touch", "client|setinfo", "cluster|myshardid", "debug|help", "debug|sleep", "heat", "heat|help",
        "heat|history", "heat|key", "heat|mitigate", "heat|partitions", "heat|plan", "heat|prefixes",
        "heat|reset", "heat|rule", "heat|slots", "heat|top",
        "hotkeys", "hotkeys|get", "hotkeys|help", "hotkeys|reset", "hotkeys|start", "hotkeys|stop"}

ARGUMENT_TYPES = {"string", "integer", "double", "key", "pattern", "unix-time", "pure-token",
                  "oneof", "block"}


def tree(reply):
    """A reply as nested tuples that keep the types: ("*", [("$", "get"), (":", "2")])."""
    if reply.items is not None:
        return chr(reply.kind), [tree(item) for item in reply.items]
    return chr(reply.kind), None if reply.text is None else reply.text.decode()


def pairs(node):
    """A map (in RESP2 an array) as a dict of nodes by name."""
    return {name[1]: value for name, value in zip(node[1][::2], node[1][1::2])}


def without(node, names):
    """A map without the pairs of these names."""
    kept = [part for name, value in zip(node[1][::2], node[1][1::2]) if name[1] not in names
            for part in (name, value)]
    return node[0], kept


class CommandTable(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.heatsink = cls.enterClassContext(Heatsink())
        cls.redis = cls.enterClassContext(Redis(cluster=True))

    def both(self, resp):
        """A function that sends a request to both servers in one protocol version."""
        ours, theirs = self.heatsink.raw(), self.redis.raw()
        for connection in (ours, theirs):
            self.assertFalse(connection.call("HELLO", resp).is_error)
        return lambda *args: (tree(ours.call(*args)), tree(theirs.call(*args)))

    def names(self):
        return [item.text.decode() for item in self.heatsink.raw().call("COMMAND", "LIST").items]

    def info(self, node):
        """An entry of COMMAND INFO without the parts that heatsink omits on purpose: notes, and the subcommands,
        which are compared under their own names."""
        kind, items = node
        self.assertEqual((kind, len(items)), ("*", 10))
        specs = items[8][0], [without(spec, {"notes"}) for spec in items[8][1]]
        return [*items[:8], specs]

    def test_info(self):
        names = self.names()
        self.assertGreater(len(names), 100)
        for resp in ("2", "3"):
            ask = self.both(resp)
            for name in names:
                with self.subTest(name, resp=resp):
                    ours, theirs = (answer[1][0] for answer in ask("COMMAND", "INFO", name))
                    if name in OURS:
                        self.assertIsNone(theirs[1])
                        self.assertEqual(ours[0], "*")
                        continue
                    self.assertEqual(self.info(ours), self.info(theirs))

    def test_subcommands_are_nested(self):
        names = self.names()
        for resp in ("2", "3"):
            ask = self.both(resp)
            for name in names:
                with self.subTest(name, resp=resp):
                    ours, theirs = (answer[1][0] for answer in ask("COMMAND", "INFO", name))
                    subs = [sub for sub in names if sub.startswith(name + "|")]
                    inside = {entry[1][0][1]: entry for entry in ours[1][9][1]}
                    self.assertEqual(set(inside), set(subs))
                    for sub in subs:
                        self.assertEqual(inside[sub], ask("COMMAND", "INFO", sub)[0][1][0])
                    if name not in OURS and not OURS.issuperset(subs):
                        self.assertEqual(ours[1][9][0], theirs[1][9][0])

    def test_docs(self):
        names = self.names()
        for resp in ("2", "3"):
            ask = self.both(resp)
            for name in names:
                with self.subTest(name, resp=resp):
                    ours, theirs = ask("COMMAND", "DOCS", name)
                    self.assertEqual(ours[0], theirs[0])
                    self.assertEqual(ours[1][0], ("$", name))
                    ours = pairs(ours)[name]
                    self.check_arguments(pairs(ours).get("arguments"))
                    if name not in OURS:
                        self.compare_docs(ours, pairs(theirs)[name])

    def compare_docs(self, ours, theirs):
        self.assertEqual(ours[0], theirs[0])
        ours, theirs = pairs(ours), pairs(theirs)
        for field in ("since", "group", "deprecated_since"):
            self.assertEqual(ours.get(field), theirs.get(field))
        self.assertNotEqual(ours["summary"], theirs["summary"])  # the texts are heatsink's own
        for field in ours.keys() & theirs.keys():
            self.assertEqual(ours[field][0], theirs[field][0], field)
        if "arguments" in theirs:
            self.assertEqual(len(ours["arguments"][1]), len(theirs["arguments"][1]))
            for mine, other in zip(ours["arguments"][1], theirs["arguments"][1]):
                self.assertEqual(mine[0], other[0])
                self.assertEqual("flags" in pairs(mine), "flags" in pairs(other))

    def check_arguments(self, arguments):
        """Every argument, nested ones too, has the fields that a client needs to show it."""
        for argument in arguments[1] if arguments else []:
            fields = pairs(argument)
            self.assertTrue(fields["name"][1])
            self.assertIn(fields["type"][1], ARGUMENT_TYPES)
            self.assertEqual("arguments" in fields, fields["type"][1] in ("oneof", "block"))
            self.assertEqual("key_spec_index" in fields, fields["type"][1] == "key")
            if fields["type"][1] == "pure-token":
                self.assertIn("token", fields)
            self.check_arguments(fields.get("arguments"))

    def test_whole_table(self):
        names = {name for name in self.names() if "|" not in name}
        for resp in ("2", "3"):
            ask = self.both(resp)
            for request in (("COMMAND",), ("COMMAND", "INFO")):
                ours, theirs = ask(*request)
                self.assertEqual(ours[0], theirs[0])
                self.assertEqual({entry[1][0][1] for entry in ours[1]}, names)
            ours, theirs = ask("COMMAND", "DOCS")
            self.assertEqual(ours[0], theirs[0])
            self.assertEqual(set(pairs(ours)), names)
            self.assertEqual(ask("COMMAND", "COUNT")[0], (":", str(len(names))))

    def test_same_answers(self):
        requests = """COMMAND INFO nosuch|COMMAND DOCS nosuch|COMMAND INFO client:nosuch get: :get
            COMMAND LIST any|COMMAND LIST FILTERBY|COMMAND LIST FILTERBY ACLCAT
            COMMAND LIST FILTERBY ACLCAT nosuch|COMMAND LIST FILTERBY ACLCAT @read
            COMMAND LIST FILTERBY MODULE nosuch|COMMAND LIST FILTERBY PATTERN GET
            COMMAND LIST FILTERBY PATTERN get x|COMMAND LIST FILTERBY PATTERN mset*
            COMMAND GETKEYS|COMMAND GETKEYS ping|COMMAND GETKEYS ping x|COMMAND GETKEYS nosuch a
            COMMAND GETKEYS get a|COMMAND GETKEYS set a|COMMAND GETKEYS get a b
            COMMAND GETKEYS mset a 1 b 2|COMMAND GETKEYS mset a 1 b|COMMAND GETKEYS mget a b c
            COMMAND GETKEYS copy a b DB 1|COMMAND GETKEYS object encoding a
            COMMAND GETKEYS object nosuch a|COMMAND GETKEYS object encoding
            COMMAND GETKEYS object help|COMMAND GETKEYS client:id a|COMMAND GETKEYS keys a b
            COMMAND nosuch|COMMAND COUNT x|COMMAND HELP x"""
        for resp in ("2", "3"):
            ask = self.both(resp)
            for request in requests.replace("\n", "|").split("|"):
                with self.subTest(request.strip(), resp=resp):
                    ours, theirs = ask(*request.replace(":", "|").split())
                    if "FILTERBY PATTERN" in request and ours[0] == "*":  # the order is undefined
                        ours[1].sort()
                        theirs[1].sort()
                    self.assertEqual(ours, theirs)

    def test_help_has_redis_layout(self):
        ask = self.both("2")
        for container in ("CLIENT", "CLUSTER", "COMMAND", "CONFIG", "LATENCY", "OBJECT", "SLOWLOG"):
            with self.subTest(container):
                ours, theirs = ask(container, "HELP")
                self.assertEqual(ours[1][0], theirs[1][0])
                self.assertEqual(ours[1][-2], theirs[1][-2])  # the line about HELP itself
                for (kind, line), (_, below) in zip(ours[1][1::2], ours[1][2::2]):
                    self.assertEqual(kind, "+")
                    self.assertRegex(line, r"^(\(no subcommand\)|[A-Z])")
                    self.assertRegex(below, r"^    \S.*\.$")

    def read_until(self, terminal, wanted):
        shown = b""
        while wanted not in shown:
            self.assertTrue(select.select([terminal], [], [], GUARD_S)[0], shown)
            shown += os.read(terminal, 1)  # byte by byte: later output must stay unread; fails when redis-cli is gone

    def test_redis_cli_starts_on_a_terminal(self):
        ours, child = pty.openpty()
        termios.tcsetwinsize(child, (25, 100))  # without a size redis-cli would query the terminal
        cli = subprocess.Popen(["redis-cli", "-p", str(self.heatsink.port)], stdin=child,
                               stdout=child, stderr=child, close_fds=True,
                               env={**os.environ, "TERM": "xterm", "HOME": self.heatsink.data})
        os.close(child)
        try:
            # redis-cli drops input typed before its prompt, so each line waits for the prompt.
            for line, wanted in ((b"get nosuch\r", b"(nil)"), (b"quit\r", b"quit")):
                self.read_until(ours, b"> ")
                os.write(ours, line)
                self.read_until(ours, wanted)
            self.assertEqual(cli.wait(GUARD_S), 0)
        finally:
            if cli.poll() is None:
                cli.kill()
                cli.wait()
            os.close(ours)


if __name__ == "__main__":
    unittest.main()
