"""Goal: users and their rules mean what they mean in Redis 7.0.

Method: heatsink with two workers and a redis-server are given the same random users: rules of every kind, single
commands, subcommands, first arguments, categories, patterns with read and write meaning, channels, selectors, and
invalid rules. Both must give the same reply to each ACL SETUSER, describe the user alike, and give the same verdict
on random requests: with ACL DRYRUN, and sent by a connection of that user, alone and inside a transaction. All of
this runs once with the embedded engine and once in front of another redis-server, whose commands heatsink learns. A
failure prints its seed.
"""
import random
import unittest

import resp
from checks import wait_learned
from servers import Heatsink, Redis

SANITIZERS = ()  # test_acl runs the same code

SEED, USERS, REQUESTS = 20240611, 120, 80

KEYS = ["app:1", "app:2", "shared:1", "x", "A", "", "app:", "0", "get"]
PATTERNS = ["app:*", "shared:*", "x", "*", "app:[12]", "?", "a\\pp:1", "[^a]*", "sh*:1", ""]
CHANNELS = ["news.*", "news.a", "*", "x"]
CATEGORIES = """keyspace read write string bitmap admin fast slow dangerous connection transaction
    scripting all hash pubsub""".split()
WRONG = ["", "+", "-", "+@", "+nosuch", "-nosuch", "+@nosuch", "+client|nosuch", "+client|",
         "-select|0", "+config|get|x", "%~x", "%RR~x", "%X~x", "~a b", "#abc", "#" + "A" * 64, "!abc",
         "<nosuch", "!" + "0" * 64, "nosuch", "(+get", "+get)", "((+get)", "(on)", "(+nosuch)", "()",
         "(", ")", "((", "~a\0b", "+get ", "on off"]
# Not sent: these commands block, close connections, or change the meaning of the next request.
UNSAFE = {"@blocking", "@admin", "@dangerous", "@connection", "@pubsub", "@scripting", "@transaction"}
# Position of the argument that counts the keys. If it is no number, Redis finds no keys and lets the command fail;
# heatsink checks the command as one on all keys. The test therefore does not compare that case.
NUMBERED = {**dict.fromkeys("zinter zunion zdiff zintercard sintercard lmpop zmpop".split(), 1),
            **dict.fromkeys("""eval evalsha eval_ro evalsha_ro fcall fcall_ro blmpop bzmpop
                            zinterstore zunionstore zdiffstore""".split(), 2)}

# Commands that run others: heatsink refuses them to users with limits.
RUNS = set("eval eval_ro evalsha evalsha_ro fcall fcall_ro function|load function|restore".split())


def opens_twice(rules):
    """A parenthesis inside an open one: Redis silently drops the rules between the two, heatsink reports a syntax
    error."""
    is_open = False
    for word in rules:
        if word.startswith("(") and not word.endswith(")"):
            if is_open:
                return True
            is_open = True
        elif word.endswith(")"):
            is_open = False
    return False


def words(request):
    return " ".join(str(word) for word in request)


class Maker:
    """Draws rules and requests."""

    def __init__(self, seed, table):
        self.random = random.Random(seed)
        self.table = table  # name: (arity, categories)
        self.names = sorted(table)

    def command_rule(self):
        pick = self.random.random()
        if pick < 0.4:
            return self.random.choice("++-") + "@" + self.random.choice(CATEGORIES)
        if pick < 0.5:
            return "+%s|%s" % (self.random.choice(("select", "get", "SELECT", "debug", "echo")),
                               self.random.choice(("0", "x", "app:1", "sleep", "SLEEP")))
        name = self.random.choice(self.names)
        return self.random.choice("++-") + (name.upper() if pick > 0.95 else name)

    def selector_rule(self):
        pick = self.random.random()
        if pick < 0.5:
            return self.command_rule()
        if pick < 0.75:
            prefix = self.random.choice(("~", "~", "%R~", "%W~", "%RW~", "%wr~"))
            return prefix + self.random.choice(PATTERNS)
        if pick < 0.9:
            return "&" + self.random.choice(CHANNELS)
        return self.random.choice("""allkeys resetkeys allchannels resetchannels allcommands
                                  nocommands ALLKEYS""".split())

    def rule(self):
        pick = self.random.random()
        if pick < 0.75:
            return [self.selector_rule()]
        if pick < 0.83:
            inner = [self.selector_rule() for _ in range(self.random.randrange(4))]
            joined = "(" + " ".join(inner) + ")"
            return [joined] if self.random.random() < 0.5 else joined.split(" ")
        if pick < 0.97:
            return [self.random.choice((
                "on", "off", ">secret", ">other", "<other", "nopass", "resetpass", "reset",
                "clearselectors", "sanitize-payload", "skip-sanitize-payload", ">two words",
                "#" + "0123456789abcdef" * 4, "!" + "0123456789abcdef" * 4))]
        return [self.random.choice(WRONG)]

    def rules(self):
        while True:
            rules = [word for _ in range(self.random.randrange(1, 9)) for word in self.rule()]
            if not opens_twice(rules):
                return rules

    def request(self):
        name = self.random.choice(self.names)
        arity = self.table[name][0]
        parts = name.split("|")
        count = abs(arity) + (self.random.randrange(3) if arity < 0 else 0) - len(parts)
        if name in ("mset", "msetnx"):
            count += count % 2
        if name == "pfmerge":
            count += 1  # with 0 sources Redis finds no keys at all
        request = [*parts, *(self.random.choice(KEYS) for _ in range(count))]
        if name in NUMBERED:
            at = NUMBERED[name]
            request[at] = str(self.random.randrange(name[0] not in "ef", len(request) - at))
        elif name == "bitfield":
            request = request[:2] + self.random.choice((["GET", "u8", "0"], ["SET", "u8", "0", "1"]))
        elif name in ("xread", "xreadgroup"):
            request = request[:abs(arity) - 3] + ["STREAMS", self.random.choice(KEYS), "0"]
        return request


class Embedded(unittest.TestCase):
    commands = 80  # both servers have at least this many

    @classmethod
    def setUpClass(cls):
        cls.heatsink = cls.enterClassContext(Heatsink("--workers", "2", *cls.engine()))
        cls.redis = cls.enterClassContext(Redis())

    @classmethod
    def engine(cls):
        return "--sync", "off"

    def setUp(self):
        self.ours, self.theirs = self.heatsink.raw(), self.redis.raw()

    def table(self):
        """Commands that both servers have. In Redis the words behind DEBUG are arguments, not subcommands."""
        names = [{item.text.decode() for item in side.call("COMMAND", "LIST").items}
                 for side in (self.ours, self.theirs)]
        names = sorted((names[0] & names[1]) - {"debug"})
        infos = self.ours.call("COMMAND", "INFO", *names).items
        self.assertGreater(len(names), self.commands)
        return {name: (info.items[1].number(), {item.text.decode() for item in info.items[6].items})
                for name, info in zip(names, infos)}

    def same(self, *request, seed):
        ours, theirs = self.ours.call(*request), self.theirs.call(*request)
        self.assertEqual(ours.raw, theirs.raw, f"seed {seed}: {words(request)}")
        return ours

    def judged(self, name, request, seed):
        """The verdict of both servers. They differ on commands that run others: Redis applies the user's rules to
        a script; heatsink cannot, so it refuses scripts to users with limits (docs/ACL.md)."""
        full = ("ACL", "DRYRUN", name, *request)
        if "|".join(request[:2]).lower() not in RUNS and request[0].lower() not in RUNS:
            return self.same(*full, seed=seed)
        ours, theirs = self.ours.call(*full), self.theirs.call(*full)
        if theirs.raw != b"+OK\r\n" or ours.raw == theirs.raw:
            self.assertEqual(ours.raw, theirs.raw, f"seed {seed}: {words(full)}")
        else:
            self.assertIn(b"+script|unchecked is missing", ours.raw, f"seed {seed}: {words(full)}")
        return ours

    def describe(self, connection, name):
        """GETUSER without the commands, because Redis may write the same set in several ways."""
        reply = connection.call("ACL", "GETUSER", name)
        if reply.is_null:
            return None
        fields = dict(zip([item.text for item in reply.items[::2]], reply.items[1::2]))
        selectors = [dict(zip([item.text for item in one.items[::2]], one.items[1::2]))
                     for one in fields[b"selectors"].items]
        return ([fields[field].raw for field in (b"flags", b"passwords", b"keys", b"channels")],
                [[one[field].raw for field in (b"keys", b"channels")] for one in selectors])

    def test_verdicts(self):
        table = self.table()
        refused = allowed = wrong = 0
        for seed in range(SEED, SEED + USERS):
            maker = Maker(seed, table)
            name = "user%d" % (seed % 3)  # three names, so that most users are changed, not created
            for _ in range(3):
                wrong += self.same("ACL", "SETUSER", name, *maker.rules(), seed=seed).is_error
            self.assertEqual(self.describe(self.ours, name), self.describe(self.theirs, name),
                             f"seed {seed}")
            self.assertEqual(self.ours.call("ACL", "USERS").raw,
                             self.theirs.call("ACL", "USERS").raw)
            if self.describe(self.ours, name) is None:
                continue
            for _ in range(REQUESTS):
                verdict = self.judged(name, maker.request(), seed)
                refused += verdict.raw.startswith(b"$")
                allowed += verdict.raw == b"+OK\r\n"
        self.assertGreater(refused, USERS * REQUESTS // 10)
        self.assertGreater(allowed, USERS * REQUESTS // 10)
        self.assertGreater(wrong, USERS // 10)

    def test_requests(self):
        """Refusals have the same text, both for single requests and in a transaction."""
        safe = {name: facts for name, facts in self.table().items()
                if not facts[1] & UNSAFE and name.split("|")[0] not in ("acl", "command")}
        refused = 0
        for seed in range(SEED, SEED + USERS):
            maker = Maker(seed, safe)
            rules = ["reset", "on", "nopass", *maker.rules(), "+multi", "+discard", "on", "nopass"]
            if self.same("ACL", "SETUSER", "runner", *rules, seed=seed).is_error:
                continue
            one, two = resp.Connection(self.heatsink.port), resp.Connection(self.redis.port)
            self.assertEqual(one.call("AUTH", "runner", "x").raw, b"+OK\r\n")
            self.assertEqual(two.call("AUTH", "runner", "x").raw, b"+OK\r\n")
            for i in range(30):
                request = maker.request()
                in_multi = i % 3 == 0
                if in_multi:
                    one.call("MULTI"), two.call("MULTI")
                ours, theirs = one.call(*request), two.call(*request)
                if in_multi:
                    one.call("DISCARD"), two.call("DISCARD")
                denied = theirs.raw.startswith(b"-NOPERM")
                refused += denied
                self.assertEqual(ours.raw if ours.raw.startswith(b"-NOPERM") else None,
                                 theirs.raw if denied else None,
                                 f"seed {seed}: {words(request)} after {words(rules)}")
            one.close(), two.close()
        self.assertGreater(refused, 300)

    def test_every_category(self):
        """+@category and -@category select the same commands on both servers."""
        table = self.table()
        for category in [item.text.decode() for item in self.theirs.call("ACL", "CAT").items]:
            ours = {item.text for item in self.ours.call("ACL", "CAT", category).items}
            theirs = {item.text for item in self.theirs.call("ACL", "CAT", category).items}
            known = {name.encode() for name in table}
            self.assertEqual(ours & known, theirs & known, category)
            for rules in (["-@all", f"+@{category}"], ["+@all", f"-@{category}"]):
                self.same("ACL", "SETUSER", "one", "reset", "~*", "&*", *rules, seed=category)
                maker = Maker(category, table)
                for name in sorted(table):
                    maker.names = [name]
                    self.judged("one", maker.request(), category)

    def test_every_command(self):
        """+command and -command, containers with their subcommands included."""
        table = self.table()
        for name in sorted(table):
            others = [other for other in table if other.split("|")[0] == name.split("|")[0]]
            for rules in (["-@all", f"+{name}"], ["+@all", f"-{name}"]):
                self.same("ACL", "SETUSER", "one", "reset", "~*", "&*", *rules, seed=name)
                for other in sorted(others + ["get"]):
                    maker = Maker(name, {other: table[other]})
                    self.judged("one", maker.request(), name)

    def test_lost_channels_close_connections(self):
        """A change of channels ends the same connections: each is open or closed on both sides."""
        listens = [("SUBSCRIBE", "a"), ("SUBSCRIBE", "b", "a"), ("PSUBSCRIBE", "a*"),
                   ("PSUBSCRIBE", "a"), ("SSUBSCRIBE", "a"), ("PING",)]
        closed = opened = 0
        for rules in (["resetchannels"], ["resetchannels", "&a"], ["resetchannels", "&a*"],
                      ["resetchannels", "&b"], ["allchannels"], ["resetchannels", "(&a* +get)"],
                      ["resetchannels", "(&*)"], ["-get"], ["off"], ["+@all", "~*"], ["reset"]):
            self.same("ACL", "SETUSER", "ear", "reset", "on", "nopass", "+@all", "&a*", "&b", "&a",
                      seed=rules)
            ears = [(side.raw(), request) for request in listens
                    for side in (self.heatsink, self.redis)]
            for ear, request in ears:
                self.assertEqual(ear.call("AUTH", "ear", "x").raw, b"+OK\r\n")
                ear.send(resp.encode(*request))
                for _ in request[1:] or ["PONG"]:
                    self.assertFalse(ear.read().is_error)
            self.same("ACL", "SETUSER", "ear", *rules, seed=rules)
            for (ours, request), (theirs, _) in zip(ears[::2], ears[1::2]):
                states = []
                for ear in (ours, theirs):
                    try:
                        ear.call("PING")
                        states.append("open")
                    except (resp.Closed, ConnectionError):
                        states.append("closed")
                self.assertEqual(*states, f"{words(request)} after {words(rules)}")
                closed += states[0] == "closed"
                opened += states[0] == "open"
        self.assertGreater(closed, 20)
        self.assertGreater(opened, 20)

    def test_simple_users_read_alike(self):
        for rules in (["on", ">pw", "~*", "&*", "+@all"], ["on", "nopass", "~app:*", "+@read"],
                      ["%R~a", "%W~b", "&c", "+get"], ["+@all", "-@dangerous"], ["off"],
                      ["+@all", "-keys", "(~x +get)", "(allkeys &* +@write)"],
                      ["+select|0"], ["+client|id"], ["reset", "on"]):
            self.same("ACL", "DELUSER", "plain", seed=rules)
            self.same("ACL", "SETUSER", "plain", *rules, seed=rules)
            for protocol in ("2", "3"):
                self.ours.call("HELLO", protocol), self.theirs.call("HELLO", protocol)
                self.same("ACL", "GETUSER", "plain", seed=rules)
            listed = [[item.raw for item in side.call("ACL", "LIST").items if b"plain" in item.raw]
                      for side in (self.ours, self.theirs)]
            self.assertEqual(*listed)

    def test_other_answers(self):
        requests = """ACL|ACL nosuch|ACL CAT|ACL CAT nosuch|ACL CAT read x|ACL DELUSER default
            ACL DELUSER nosuch|ACL DELUSER|ACL LOAD|ACL SAVE|ACL WHOAMI|ACL WHOAMI x|ACL GETUSER nosuch
            ACL GENPASS 0|ACL GENPASS x|ACL GENPASS 4097|ACL GENPASS 1 2|ACL LOG x|ACL LOG 1 2
            ACL LOG RESET|ACL LOG RESET 1|ACL LOG 5|ACL LOG -1|ACL DRYRUN nosuch get a
            ACL DRYRUN default nosuch|ACL DRYRUN default get|ACL DRYRUN default client nosuch
            ACL DRYRUN default|ACL SETUSER|CLIENT KILL USER nosuch|CONFIG GET user
            AUTH x|AUTH nosuch x|AUTH default anything|AUTH a b c|ACL LOG 0
            CONFIG SET user x""".replace("\n", "|")
        for request in requests.split("|"):
            self.same(*request.split(), seed="none")
        self.assertEqual(len(self.ours.call("ACL", "GENPASS").text), 64)
        for bits in (1, 4, 5, 4096):
            theirs = self.theirs.call("ACL", "GENPASS", bits).text
            self.assertEqual(len(self.ours.call("ACL", "GENPASS", bits).text), len(theirs))
        self.assertNotEqual(self.ours.call("ACL", "GENPASS").raw,
                            self.ours.call("ACL", "GENPASS").raw)


class Behind(Embedded):
    """In front of a redis-server whose commands heatsink learns."""

    commands = 250

    @classmethod
    def engine(cls):
        behind = cls.enterClassContext(Redis())
        return "--engine", f"redis://127.0.0.1:{behind.port}"

    def setUp(self):
        wait_learned(self, self.heatsink)
        super().setUp()


if __name__ == "__main__":
    unittest.main()
