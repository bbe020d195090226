"""Goal: what heatsink learns from a server's COMMAND reply equals what that server says itself.

Method: the COMMAND reply of a redis-server, in each protocol version, is given to the unit test's program
(tests/unit/test_learned.c), which answers COMMAND subcommands from it. The same requests go to the server. COMMAND
INFO of every learned command must be the same, byte for byte, in the protocol version learned from and in the other.
The keys of a request, found from the table alone, must be those that the server's own code finds.
"""
import os
import subprocess
import tempfile
import unittest

from checks import wait_for
from resp import Connection
from servers import GUARD_S, Heatsink, Redis

SANITIZERS = ("address",)  # one client at a time: no data race is possible

PROGRAM = os.path.join(os.environ.get("HEATSINK_BUILD", "build"), "tests", "test_learned")

# Requests split at single spaces: two spaces make an empty argument.
REQUESTS = """
GET a|SET a 1|SET a 1 GET|SET a 1 EX 10 GET|MSET a 1 b 2|COPY a b|RENAME a b|LCS a b|EXISTS a b
EVAL s 0|EVAL s 2 a b c|EVALSHA x 1 a|EVAL_RO s 1 a|EVALSHA_RO s 1 a|FCALL f 2 a b|FCALL_RO f 1 a
EVAL s 3 a b|EVAL s -1 a|EVAL s x a|EVAL s 99999999999999999999 a|EVAL s 2147483648 a|FCALL f 0 a
XREAD STREAMS a b 0 0|XREAD COUNT 2 BLOCK 0 STREAMS a 0|XREAD COUNT 1 STREAMS|XREAD COUNT 1 x
XREADGROUP GROUP g c STREAMS a b > >|XREADGROUP GROUP streams c COUNT 1 NOACK STREAMS a >
ZUNION 2 a b|ZUNION 2 a b WEIGHTS 1 2|ZUNION 3 a b|ZDIFF 1 a|ZINTERCARD 2 a b LIMIT 1|ZINTER 2 a b
ZUNIONSTORE d 2 a b|ZUNIONSTORE d 1 a AGGREGATE MIN|ZDIFFSTORE d 2 a b|ZINTERSTORE d 5 a b
SORT a|SORT a STORE b|SORT a BY x GET store LIMIT 0 1 STORE b|SORT a STORE b STORE c|SORT_RO a BY x
SORT a LIMIT STORE b|SORT a GET STORE b|SORT a ALPHA DESC STORE
GEORADIUS a 1 2 3 m|GEORADIUS a 1 2 3 m STORE b|GEORADIUS a 1 2 3 m COUNT 1 STOREDIST b
GEORADIUSBYMEMBER a x 3 m STORE b|GEORADIUS_RO a 1 2 3 m|GEOSEARCHSTORE a b FROMMEMBER x BYRADIUS 1 m
BLMPOP 0 2 a b LEFT|LMPOP 1 a LEFT|LMPOP 2 a b LEFT COUNT 1|BZMPOP 0 1 a MIN|ZMPOP 2 a b MAX
SINTERCARD 2 a b LIMIT 1|SINTERCARD 3 a b|BLPOP a b c 0|BRPOPLPUSH a b 0|BLMOVE a b LEFT LEFT 0
MIGRATE h 1 a 0 10|MIGRATE h 1  0 10 KEYS a b|MIGRATE h 1 keys 0 10 COPY
MIGRATE h 1  0 10 COPY REPLACE KEYS a b c|MIGRATE h 1  0 10 AUTH keys KEYS a
MIGRATE h 1  0 10 AUTH2 keys keys KEYS a b
OBJECT ENCODING a|OBJECT FREQ a|XGROUP CREATE a g 0|XGROUP DESTROY a g|XINFO STREAM a|XINFO HELP
MEMORY USAGE a|MEMORY USAGE a SAMPLES 5|MEMORY DOCTOR|BITOP AND d a b|BITOP NOT d a
BITFIELD a GET u8 0|BITFIELD a SET u8 0 1|BITFIELD a GET u8 0 INCRBY u8 0 1|BITFIELD_RO a GET u8 0
LMOVE a b LEFT RIGHT|SMOVE a b x|SINTER a b c|SINTERSTORE d a b|SDIFF a|PFCOUNT a b|PFMERGE d a b
HSET a f v|HGETALL a|LPUSH a x|ZADD a 1 x|XADD a * f v|DUMP a|RESTORE a 0 x|PFADD a|TYPE a|TTL a
PUBLISH c m|SPUBLISH c m|SWAPDB 0 1|WAIT 0 0|SCRIPT LOAD x|FUNCTION LOAD x|NOSUCH a|XGROUP NOSUCH a
PFMERGE d a|HGET a|XGROUP CREATE a|ZUNIONSTORE d 0|LMPOP 0 LEFT|BLMPOP 0 x a LEFT
"""

# Malformed numbers of keys for which the server still finds keys.
NEARLY = """
EVAL s 1.5 a|EVAL s 1abc a|EVAL s +1 a|EVAL s 01 a|EVAL s 2x a b c|EVAL s x a|EVAL s - a|EVAL s -1 a
EVAL s 4294967297 a|EVAL s 2147483648 a|EVAL s 9223372036854775808 a|EVAL s -9223372036854775809 a
EVAL s 0x1 a|EVAL s 00 a|EVAL s -4294967295 a|EVAL s 18446744073709551617 a|EVAL s 9x a
ZUNION 2x a b|LMPOP 1.9 a LEFT|BLMPOP 0 1x a LEFT|SINTERCARD +2 a b|FCALL f 1.5 a
"""

# For these the server's own code reports fewer flags than its table, or none.
FLAGS_UNSAID = {"MIGRATE"}


def requests(lines=REQUESTS):
    return [line.split(" ") for line in lines.replace("\n", "|").split("|") if line]


class Learned(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.redis = cls.enterClassContext(Redis())

    def connection(self, resp):
        connection = self.redis.raw()
        self.assertFalse(connection.call("HELLO", resp).is_error)
        return connection

    def learned(self, resp, questions):
        """The program's answers to questions (protocol version, words), learned in the protocol version `resp`."""
        with tempfile.NamedTemporaryFile() as file:
            file.write(self.connection(resp).call("COMMAND").raw)
            file.flush()
            lines = "".join("\t".join([str(dialect), *words]) + "\n"
                            for dialect, words in questions)
            done = subprocess.run([PROGRAM, file.name], input=lines.encode(), timeout=GUARD_S,
                                  stdout=subprocess.PIPE, check=True)
        return done.stdout

    def check(self, questions):
        """The server's reply must equal the answer learned in either protocol version."""
        connections = {resp: self.connection(resp) for resp in (2, 3)}
        wanted = [connections[resp].call(*words).raw for resp, words in questions]
        for learned_from in (2, 3):
            answers = self.learned(learned_from, questions)
            for (resp, words), raw in zip(questions, wanted):
                self.assertEqual(answers[:len(raw)], raw, (learned_from, resp, words))
                answers = answers[len(raw):]
            self.assertEqual(answers, b"")

    def names(self, listing):
        return {item.text.decode() for item in listing.items}

    def test_info_of_every_learned_command(self):
        """All commands except heatsink's own, refused ones, and containers with a refused subcommand."""
        with Heatsink() as heatsink:
            own = self.names(heatsink.raw().call("COMMAND", "LIST"))
        theirs = self.names(self.connection(2).call("COMMAND", "LIST"))
        shown = set(self.learned(2, [(2, ["COMMAND", "LIST"])]).decode().split("\r\n")[2::2])
        hidden = theirs - own - shown
        parts = {name.partition("|")[0] for name in hidden}
        self.assertLessEqual({"monitor", "sync", "script|debug"}, hidden)
        self.assertTrue(all(name in parts or "|" in name for name in hidden))
        containers = {name.partition("|")[0] for name in theirs if "|" in name}
        names = sorted((theirs & shown) - own - parts - containers)
        self.assertGreater(len(names), 150)
        self.check([(resp, ["COMMAND", "INFO", name]) for name in names for resp in (2, 3)])
        self.assertEqual(self.learned(3, [(3, ["COMMAND", "INFO", "monitor"])]), b"*1\r\n_\r\n")

    def test_containers_that_are_all_learned(self):
        """The server's order of subcommands is undefined, so the lines of the replies are compared."""
        for resp in (2, 3):
            connection = self.connection(resp)
            for name in ("xgroup", "xinfo", "memory", "pubsub"):
                question = ["COMMAND", "INFO", name]
                wanted = connection.call(*question).raw
                for learned_from in (2, 3):
                    got = self.learned(learned_from, [(resp, question)])
                    self.assertEqual(sorted(got.split(b"\r\n")), sorted(wanted.split(b"\r\n")))

    def test_keys_are_those_the_server_finds(self):
        self.check([(resp, ["COMMAND", "GETKEYS", *words])
                    for words in requests() + requests(NEARLY) for resp in (2, 3)])

    def test_effects_on_keys(self):
        self.check([(resp, ["COMMAND", "GETKEYSANDFLAGS", *words]) for words in requests()
                    if words[0] not in FLAGS_UNSAID for resp in (2, 3)])


class NotEmbedded(unittest.TestCase):
    """For every command that the embedded engine lacks, the error says whether heatsink runs it in front of a
    server; heatsink in front of a real server must agree."""

    def names(self, server):
        with Connection(server.port, guard_s=GUARD_S) as connection:
            return {item.text.decode() for item in connection.call("COMMAND", "LIST").items}

    def test_every_command_of_a_server(self):
        with Redis() as redis, Heatsink() as own, \
                Heatsink("--engine", f"redis://127.0.0.1:{redis.port}") as front:
            missing = self.names(redis)
            missing -= self.names(own)
            missing = {name for name in missing if "|" not in name} | {"function|load"}
            self.assertGreater(len(missing), 150)
            wait_for(self, "it has learned", lambda: self.names(front) - self.names(own))
            behind = self.names(front)
            for name in sorted(missing):
                with Connection(own.port, guard_s=GUARD_S) as connection:
                    said = connection.call(*name.split("|")).text.decode()
                self.assertRegex(said, "^ERR unknown (sub)?command '")
                if name in behind:
                    self.assertRegex(said, r"\(the embedded engine .*; with --engine, in front of a "
                                           r"Redis server, it works\)$", name)
                else:
                    self.assertIn("(heatsink refuses it on every engine: ", said, name)


if __name__ == "__main__":
    unittest.main()
