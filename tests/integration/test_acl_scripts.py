"""Goal: users with limits run no scripts, because the server behind heatsink would run them with the permissions of
heatsink's own user.

Method: heatsink in front of a redis-server, and users whose commands, keys or channels are limited, each in turn.
These users send every command that runs other commands or installs code: none may take effect, and the error says
why and what to grant. The list is compared with the server's own category @scripting, so that a command of a newer
server is not forgotten. Further requests name a forbidden key in every unusual position. The grant +script|unchecked
must work and must survive every way of writing and reading users.
"""
import hashlib
import os
import signal
import unittest

import resp
from cases import FolderCase
from checks import wait_for
from servers import Heatsink, Redis

SANITIZERS = ("address",)  # one client at a time: no data race is possible

OK = b"+OK\r\n"
SCRIPT = "return redis.call('flushall')"
SHA = hashlib.sha1(SCRIPT.encode()).hexdigest()
READS = "return redis.call('get', 'other')"
READS_SHA = hashlib.sha1(READS.encode()).hexdigest()
LIBRARY = ("#!lua name=lib\n"
           "redis.register_function('wipe', function() return redis.call('flushall') end)\n"
           "redis.register_function{function_name='look', flags={'no-writes'},"
           " callback=function() return redis.call('get', 'other') end}\n")

# Every command that runs others, each with a harmful request.
RUNS = {
    "eval": ("EVAL", SCRIPT, "0"),
    "evalsha": ("EVALSHA", SHA, "0"),
    "eval_ro": ("EVAL_RO", READS, "0"),
    "evalsha_ro": ("EVALSHA_RO", READS_SHA, "0"),
    "fcall": ("FCALL", "wipe", "0"),
    "fcall_ro": ("FCALL_RO", "look", "0"),
    "function|load": ("FUNCTION", "LOAD", "REPLACE", LIBRARY),
    "function|restore": ("FUNCTION", "RESTORE", "payload"),
}
# The rest of @scripting.
HARMLESS = {"script", "function", "function|delete", "function|dump", "function|flush",
            "function|help", "function|kill", "function|list", "function|stats"}

LIMITS = {
    "commands": ["~*", "&*", "+@all", "-flushall"],
    "few commands": ["~*", "&*", "+@scripting", "+multi", "+exec", "+get"],
    "keys": ["~app:*", "&*", "+@all"],
    "read keys": ["%R~*", "&*", "+@all"],
    "channels": ["~*", "+@all"],
    "some channels": ["~*", "&news.*", "+@all"],
    "a selector": ["~app:*", "+@read", "(~* &* +@scripting)"],
    # The first example of docs/ACL.md.
    "the example": ["~app:*", "%R~shared:*", "&news.*", "+@all", "-@dangerous"],
}


class Scripts(FolderCase):
    def setUp(self):
        super().setUp()
        self.redis = Redis()
        self.addCleanup(self.redis.close)
        self.behind = self.redis.raw()
        self.behind.call("FUNCTION", "LOAD", LIBRARY)
        self.behind.call("SCRIPT", "LOAD", SCRIPT)
        self.behind.call("SCRIPT", "LOAD", READS)
        self.behind.call("SET", "other", "treasure")
        self.heatsink = self.serve()
        self.admin = self.heatsink.raw()

    def serve(self, *args):
        server = Heatsink("--engine", f"redis://127.0.0.1:{self.redis.port}", "--workers", "2",
                          *args)
        self.addCleanup(server.close)
        return server

    def user(self, *rules):
        """A connection of a user that has only these rules."""
        reply = self.admin.call("ACL", "SETUSER", "alice", "reset", "on", "nopass", *rules)
        self.assertEqual(reply.raw, OK, rules)
        connection = self.heatsink.raw()
        self.assertEqual(connection.call("AUTH", "alice", "x").raw, OK)
        return connection

    def assert_refused(self, reply, name):
        text = reply.raw.decode()
        self.assertTrue(text.startswith(
            f"-NOPERM this user has no permissions to run the '{name}' command"), text)
        self.assertIn("ACL SETUSER alice +script|unchecked", text)
        self.assertEqual(self.behind.call("GET", "other").text, b"treasure")

    def test_every_scripting_command_is_known(self):
        names = {item.text.decode() for item in self.behind.call("COMMAND", "LIST", "FILTERBY",
                                                                 "ACLCAT", "scripting").items}
        subs = {name for name in names if name.startswith("script|")}
        self.assertEqual(names - subs - HARMLESS, set(RUNS))

    def test_every_command_that_runs_others_is_refused(self):
        before = self.behind.call("FUNCTION", "LIST", "WITHCODE").raw
        for what, rules in LIMITS.items():
            alice = self.user(*rules)
            for name, request in RUNS.items():
                with self.subTest(what, command=name):
                    if self.admin.call("ACL", "DRYRUN", "default", *request).raw != OK:
                        self.fail(f"{name} is not known here")
                    self.assert_refused(alice.call(*request), name)
                    self.assertIn(b"+script|unchecked is missing",
                                  self.admin.call("ACL", "DRYRUN", "alice", *request).text)
                    entry = self.admin.call("ACL", "LOG", "1").items[0]
                    fields = dict(zip([item.text for item in entry.items[::2]],
                                      [item.text for item in entry.items[1::2]]))
                    self.assertEqual((fields[b"reason"], fields[b"object"], fields[b"username"]),
                                     (b"command", name.encode(), b"alice"))
                    # Inside a transaction the command is refused when it is queued.
                    if alice.call("MULTI").raw == OK:
                        self.assert_refused(alice.call(*request), name)
                        self.assertTrue(alice.call("EXEC").raw.startswith(b"-EXECABORT"))
        self.assertEqual(self.behind.call("FUNCTION", "LIST", "WITHCODE").raw, before)

    def test_a_script_queued_before_the_limits(self):
        alice = self.user("~*", "&*", "+@all")
        alice.call("MULTI")
        self.assertEqual(alice.call(*RUNS["eval"]).raw, b"+QUEUED\r\n")
        self.admin.call("ACL", "SETUSER", "alice", "-flushall")
        reply = alice.call("EXEC")
        self.assertIn(b"ACLs rules changed", reply.raw)
        self.assertIn(b"+script|unchecked", reply.raw)
        self.assertEqual(self.behind.call("GET", "other").text, b"treasure")

    def test_permitted_users(self):
        """Users without limits and users with the grant may run everything."""
        for rules in (["~*", "&*", "+@all"], ["allkeys", "allchannels", "allcommands"],
                      ["+@read", "~app:*", "(~* &* +@all)"],
                      ["~app:*", "+@scripting", "+script|unchecked"],
                      ["~app:*", "+@all", "-flushall", "+SCRIPT|Unchecked"],
                      ["+get", "~x", "(~app:* +@scripting +script|unchecked)"]):
            alice = self.user(*rules)
            with self.subTest(rules):
                self.behind.call("SET", "other", "treasure")
                self.assertEqual(alice.call("EVAL_RO", READS, "0").text, b"treasure")
                self.assertEqual(alice.call("FCALL_RO", "look", "0").text, b"treasure")
                self.assertEqual(alice.call("EVAL", SCRIPT, "0").raw, OK)
                self.assertEqual(self.behind.call("DBSIZE").raw, b":0\r\n")
                self.assertEqual(self.admin.call("ACL", "DRYRUN", "alice", *RUNS["fcall"]).raw, OK)

    def test_the_grant_grants_nothing_else(self):
        alice = self.user("~app:*", "+@read", "+script|unchecked")
        self.assertEqual(alice.call("EVAL", SCRIPT, "0").raw,
                         b"-NOPERM this user has no permissions to run the 'eval' command\r\n")
        alice = self.user("~app:*", "+eval", "+script|unchecked")
        self.assertIn(b"one of the keys", alice.call("EVAL", "return 1", "1", "other").raw)
        self.assertEqual(alice.call("EVAL", "return 1", "1", "app:1").raw, b":1\r\n")

    def test_rules_that_revoke_the_grant(self):
        granted = ["~app:*", "+@all", "+script|unchecked"]
        for rule in ("-script|unchecked", "-script", "-@scripting", "-@all", "nocommands", "reset"):
            alice = self.user(*granted)
            self.assertEqual(alice.call("EVAL", "return 1", "0").raw, b":1\r\n")
            self.admin.call("ACL", "SETUSER", "alice", rule, "+eval", "~app:*", "on", "nopass")
            self.assert_refused(alice.call(*RUNS["eval"]), "eval")
        for rule in ("+@all", "allcommands", "+script", "+@scripting", "-get", "clearselectors"):
            alice = self.user(*granted)
            self.admin.call("ACL", "SETUSER", "alice", rule, "-flushdb")
            self.assertEqual(alice.call("EVAL", "return 1", "0").raw, b":1\r\n", rule)
        # No other rule grants it.
        for rule in ("+script", "+@scripting", "+eval|unchecked", "+script|load"):
            alice = self.user("~app:*", "+eval", rule)
            self.assert_refused(alice.call(*RUNS["eval"]), "eval")

    def test_the_grant_survives_a_rewrite(self):
        path = self.path("conf")
        with open(path, "w", encoding="utf-8") as file:
            file.write("user bob on nopass ~app:* +eval +script|unchecked (~x +fcall +script|unchecked)\n")
        server = self.serve("--config", path)
        admin, bob = server.raw(), server.raw()
        line = (b"user bob on nopass ~app:* resetchannels -@all +eval +script|unchecked "
                b"(~x resetchannels -@all +fcall +script|unchecked)")

        def listed():
            return [item.text for item in admin.call("ACL", "LIST").items if b"bob" in item.text]
        self.assertEqual(listed(), [line])
        fields = admin.call("ACL", "GETUSER", "bob").items
        fields = dict(zip([item.text for item in fields[::2]], fields[1::2]))
        self.assertEqual(fields[b"commands"].text, b"-@all +eval +script|unchecked")
        # The line of ACL LIST creates the same user.
        words = line.decode().split()[2:]
        self.assertEqual(admin.call("ACL", "SETUSER", "bob", "reset", *words).raw, OK)
        self.assertEqual([entry.replace(b" sanitize-payload", b"") for entry in listed()], [line])
        self.assertEqual(admin.call("ACL", "SETUSER", "carol", "+@all", "+script|unchecked").raw, OK)
        self.assertEqual(admin.call("CONFIG", "REWRITE").raw, OK)
        with open(path, encoding="utf-8") as file:
            self.assertIn("+@all +script|unchecked\n", file.read())
        self.assertEqual(admin.call("ACL", "SETUSER", "bob", "-script|unchecked").raw, OK)
        os.kill(server.process.pid, signal.SIGHUP)
        wait_for(self, "the file is read", lambda: b"+eval +script|unchecked" in listed()[0])
        self.assertEqual(bob.call("AUTH", "bob", "x").raw, OK)
        # SIGHUP has no reply, and bob's worker may take over the new users later than admin's worker.
        wait_for(self, "bob's worker has the users of the file",
                 lambda: bob.call("EVAL", "return 1", "0").raw == b":1\r\n")
        self.assertEqual(bob.call("ACL", "WHOAMI").raw,
                         b"-NOPERM this user has no permissions to run the 'acl|whoami' command\r\n")

    def test_keys_in_unusual_places(self):
        """No request reaches a forbidden key, wherever it names the key."""
        alice = self.user("~app:*", "&*", "+@all")
        self.behind.call("GEOADD", "app:geo", "1", "1", "here")
        for request in """SORT app:l BY other_*|SORT app:l GET other_*|SORT app:l STORE other
                SORT_RO app:l GET other|COPY app:a other|COPY other app:a|RENAME app:a other
                RENAMENX other app:a|MIGRATE 127.0.0.1 1 other 0 10
                MIGRATE 127.0.0.1 1 other 0 10 COPY AUTH pw
                RESTORE other 0 x|DUMP other|OBJECT ENCODING other|MEMORY USAGE other
                GEORADIUS app:geo 1 1 1 km STORE other|GEORADIUS app:geo 1 1 1 km STOREDIST other
                GEORADIUSBYMEMBER app:geo here 1 km STORE other|GEOSEARCHSTORE other app:geo FROMMEMBER here BYRADIUS 1 km
                GEOSEARCHSTORE app:geo other FROMMEMBER here BYRADIUS 1 km|XREAD STREAMS app:s other 0 0
                XREADGROUP GROUP g c STREAMS other 0|BLPOP app:l other 1|BLMOVE app:l other LEFT LEFT 1
                LMOVE other app:l LEFT LEFT|BITOP AND app:a other|BITOP AND other app:a
                PFMERGE app:a other|ZUNIONSTORE app:z 1 other|ZUNIONSTORE other 1 app:z|ZUNION 1 other
                ZRANGESTORE other app:z 0 -1|SINTERSTORE other app:a|SINTERCARD 1 other
                SMOVE app:a other x|LCS app:a other|MSET app:a 1 other 2|LMPOP 1 other LEFT
                EVAL x 1 other""".replace("\n", "|").split("|"):
            reply = alice.call(*request.split())
            self.assertTrue(reply.raw.startswith((b"-NOPERM", b"-ERR BY option of SORT denied",
                                                  b"-ERR GET option of SORT denied")),
                            (request, reply.raw))
        self.assertEqual(self.behind.call("KEYS", "*").raw.count(b"app:"), 1)
        self.assertEqual(self.behind.call("GET", "other").text, b"treasure")


if __name__ == "__main__":
    unittest.main()
