"""Goal: users may come from the configuration file and from flags, may be changed while the server runs, and survive
a rewrite of the file.

Method: servers with two workers and configuration files of their own. test_acl_differential compares the meaning of
ACL rules with Redis. This module checks where users come from, that a change holds on every worker from the moment
it is acknowledged (for open connections, too), and that the connections of a deleted user end.
"""
import os
import signal
import subprocess
import unittest

import resp
from cases import FolderCase, ServerCase
from checks import client_rows, wait_for
from servers import Heatsink, Redis, heatsink_path

SANITIZERS = ("address",)  # one client at a time: no data race is possible

OK = b"+OK\r\n"
WRONGPASS = b"-WRONGPASS invalid username-password pair or user is disabled.\r\n"
EMPTY = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"  # SHA-256 of nothing


def noperm(command):
    return b"-NOPERM this user has no permissions to run the '%s' command\r\n" % command.encode()


class Files(FolderCase):
    """Users in the configuration file and in flags."""

    def write(self, text):
        with open(self.path("conf"), "w", encoding="utf-8") as file:
            file.write(text)
        return self.path("conf")

    def read(self):
        with open(self.path("conf"), encoding="utf-8") as file:
            return file.read()

    def serve(self, *flags):
        server = Heatsink("--sync", "off", "--workers", "2", *flags)
        self.addCleanup(server.close)
        return server

    def listed(self, connection):
        return [item.text.decode() for item in connection.call("ACL", "LIST").items]

    def test_lines_and_flags(self):
        self.write("# people\nuser alice on >secret ~app:* +@read\n\nsync off\n"
                   "USER bob on '>two words' allkeys +@all (~x +get)\n")
        server = self.serve("--config", self.path("conf"), "--user", "carol on nopass +ping",
                            "--user=dave off +get|a")
        connection = server.raw()
        self.assertEqual([line.split()[1] for line in self.listed(connection)],
                         ["alice", "bob", "carol", "dave", "default"])
        for name, password in (("alice", "secret"), ("bob", "two words"), ("carol", "any")):
            self.assertEqual(connection.call("AUTH", name, password).raw, OK)
            self.assertEqual(connection.call("AUTH", "dave", password).raw, WRONGPASS)
        self.assertEqual(connection.call("PING").raw, b"+PONG\r\n")
        self.assertEqual(connection.call("GET", "a").raw, noperm("get"))

    def test_a_flag_wins_over_a_line(self):
        self.write("user alice on nopass +get\nuser default on >file ~* &* +@all\n")
        server = self.serve("--config", self.path("conf"), "--user", "alice on nopass +set",
                            "--requirepass", "flag")
        connection = server.raw()
        # A `user default` line overrides requirepass, as in Redis.
        self.assertEqual(connection.call("AUTH", "flag").raw, WRONGPASS)
        self.assertEqual(connection.call("AUTH", "file").raw, OK)
        self.assertEqual(self.listed(connection)[0],
                         "user alice on nopass resetchannels -@all +set")

    def test_wrong_lines(self):
        """The error names file, line and word; the exit status is 1."""
        cases = [("user", 1, "name"), ("\nuser alice on +nosuch", 2, "'+nosuch'"),
                 ("user alice blah", 1, "'blah'"), ("user alice (+get", 1, "'(+get'"),
                 ("user alice on\n# again\nuser alice off", 3, "'alice' is defined twice"),
                 ("user 'a b' on", 1, "'a b'"), ("user alice +@nosuch", 1, "+@nosuch"),
                 ('user alice "on', 1, "quotes"), ("user alice #12", 1, "64 characters")]
        for text, line, word in cases:
            with self.subTest(text):
                path = self.write(text + "\n")
                run = subprocess.run([heatsink_path(), "serve", "--check-config", "--config", path],
                                     capture_output=True, text=True, check=False)
                self.assertEqual(run.returncode, 1)
                self.assertEqual(len(run.stderr.splitlines()), 1, run.stderr)
                self.assertIn(f"{path}:{line}:", run.stderr)
                self.assertIn(word, run.stderr)
        for flag in ("alice +nosuch", "", "alice (", "alice ~a ~* ~b"):
            run = subprocess.run([heatsink_path(), "serve", "--check-config", "--user", flag],
                                 capture_output=True, text=True, check=False)
            self.assertEqual(run.returncode, 1, flag)
            self.assertIn("user", run.stderr)

    def test_unknown_commands_with_a_server_behind(self):
        """heatsink reads the file before it knows the server's commands, so it accepts a name it does not know."""
        path = self.write("user alice on +hget +xgroup|create\nengine redis://127.0.0.1:1\n")
        run = subprocess.run([heatsink_path(), "serve", "--check-config", "--config", path],
                             capture_output=True, text=True, check=False)
        self.assertEqual(run.returncode, 0, run.stderr)

    def test_rewrite_keeps_users(self):
        self.write("# first\nuser alice on >secret ~* +get\nuser gone on\n# last\n")
        server = self.serve("--config", self.path("conf"))
        connection = server.raw()
        odd = ["on", ">pass word", "~it's", '~"q"', "~b\\s", "~\x01", "&c*", "+@all", "-@dangerous",
               "(~x +get)"]
        self.assertEqual(connection.call("ACL", "SETUSER", "odd", *odd).raw, OK)
        self.assertEqual(connection.call("ACL", "SETUSER", "alice", "+set").raw, OK)
        self.assertEqual(connection.call("ACL", "DELUSER", "gone").raw, b":1\r\n")
        self.assertEqual(connection.call("CONFIG", "REWRITE").raw, OK)
        lines = self.read().splitlines()
        self.assertEqual((lines[0], lines[2]), ("# first", "# last"))
        self.assertRegex(lines[1], r"^user alice on #[0-9a-f]{64} ~\* resetchannels -@all \+get \+set$")
        self.assertNotIn("gone", self.read())
        self.assertNotIn("default", self.read())  # it is what requirepass makes of it
        before = self.listed(connection)
        connection.call("CONFIG", "SET", "requirepass", "x")
        connection.call("CONFIG", "REWRITE")
        self.assertNotIn("user default", self.read())
        again = self.serve("--config", self.path("conf"))
        connection = again.raw()
        self.assertEqual(connection.call("AUTH", "x").raw, OK)
        after = self.listed(connection)
        self.assertEqual([line for line in after if "default" not in line],
                         [line for line in before if "default" not in line])
        self.assertEqual(connection.call("ACL", "SETUSER", "default", "-keys").raw, OK)
        self.assertEqual(connection.call("CONFIG", "REWRITE").raw, OK)
        self.assertIn("user default on #", self.read())
        self.assertEqual(self.serve("--config", self.path("conf")).raw().call("AUTH", "x").raw, OK)

    def test_redis_loads_the_written_file(self):
        """Redis starts with the lines that heatsink wrote and has the same users."""
        self.write("user alice on >secret ~app:* %R~r &news +@read +set (~x +get)\n")
        server = self.serve("--config", self.path("conf"))
        server.raw().call("CONFIG", "REWRITE")
        line = next(line for line in self.read().splitlines() if line.startswith("user"))
        # On the command line redis-server would take each word for a directive, so the line goes into a file.
        with open(self.path("redis.conf"), "w", encoding="utf-8") as file:
            file.write(line + "\n")
        with Redis("--include", self.path("redis.conf")) as redis:
            self.assertEqual(redis.raw().call("ACL", "GETUSER", "alice").raw,
                             server.raw().call("ACL", "GETUSER", "alice").raw)

    def test_reload(self):
        """SIGHUP replaces the users by those of the file; a file with an error changes nothing."""
        self.write("user alice on nopass +get ~*\nuser bob on nopass +@all\n")
        server = self.serve("--config", self.path("conf"))
        alice, bob, admin = server.raw(), server.raw(), server.raw()
        self.assertEqual(alice.call("AUTH", "alice", "x").raw, OK)
        self.assertEqual(bob.call("AUTH", "bob", "x").raw, OK)
        admin.call("ACL", "SETUSER", "carol", "on")
        self.write("user alice on nopass +nosuch\n")
        server.signal(signal.SIGHUP)
        server.wait_log(r"nothing changed: .*conf:1: .*\+nosuch")
        self.assertEqual(alice.call("GET", "a").raw, b"$-1\r\n")
        self.write("user alice on nopass +set ~*\nuser dave on\n")
        server.signal(signal.SIGHUP)
        server.wait_log("SIGHUP: reloaded")
        self.assertTrue(bob.is_closed())
        self.assertEqual(alice.call("GET", "a").raw, noperm("get"))
        self.assertEqual(alice.call("SET", "a", "1").raw, OK)
        self.assertEqual([item.text for item in admin.call("ACL", "USERS").items],
                         [b"alice", b"dave", b"default"])

    def test_protected_mode_knows_users(self):
        def error(*flags):
            run = subprocess.run([heatsink_path(), "serve", "--check-config", "--bind", "0.0.0.0",
                                  *flags], capture_output=True, text=True, check=False)
            self.assertEqual(run.returncode, 1 if run.stderr else 0)
            return run.stderr
        self.assertIn("'default', which has no password: set requirepass", error())
        self.assertTrue(error("--user", "alice on >secret"))
        self.assertFalse(error("--user", "default off"))
        self.assertFalse(error("--user", "default on >secret ~* +@all"))
        self.assertTrue(error("--requirepass", "x", "--user", "default on nopass +@all"))
        # Any other user without a password opens the server, too.
        for user in ("x on nopass +@all ~*", "x on > +@all ~*", "x on #" + EMPTY + " +ping"):
            for default in ("default off", "default on >secret"):
                self.assertIn("as user 'x', which has no password: give it one (>password), turn the "
                              "user off (x off), or start with --protected-mode no",
                              error("--user", default, "--user", user))
            self.assertFalse(error("--protected-mode", "no", "--user", user))
        self.assertFalse(error("--user", "default off", "--user", "x off nopass +@all"))

    def assert_refused(self, reply, user):
        self.assertTrue(reply.raw.startswith(b"-ERR"), reply.raw)
        self.assertIn(b"would let anyone on the network log in as user '%s'" % user, reply.raw)
        self.assertIn(b"--protected-mode no", reply.raw)

    def test_protected_mode_holds_while_it_runs(self):
        """While the server listens on a public address, no command and no reload of the file can let a user in
        without a password."""
        self.write("bind 0.0.0.0\nrequirepass secret\nuser bob off nopass +@all ~*\n")
        server = self.serve("--config", self.path("conf"))
        admin = server.raw()
        self.assertEqual(admin.call("AUTH", "secret").raw, OK)
        before = self.listed(admin)
        for user, rules in ((b"default", ["nopass"]), (b"default", [">"]),
                            (b"default", ["reset", "on", "nopass"]), (b"bob", ["on"]),
                            (b"carol", ["on", "nopass"]), (b"carol", ["on", "#" + EMPTY]),
                            (b"carol", ["nopass", "on", "+@all", "~*"])):
            self.assert_refused(admin.call("ACL", "SETUSER", user, *rules), user)
        self.assert_refused(admin.call("CONFIG", "SET", "requirepass", ""), b"default")
        self.assert_refused(admin.call("CONFIG", "SET", "maxclients", "99", "requirepass", ""),
                            b"default")
        for name, value in (("protected-mode", "no"), ("bind", "127.0.0.1")):
            self.assertIn(b"can't set immutable config", admin.call("CONFIG", "SET", name, value).raw)
        self.assertEqual(self.listed(admin), before)
        refused = 0
        # A new address takes effect after a restart only, but new users would take effect at once.
        for text in ("bind 127.0.0.1\n", "bind 127.0.0.1\nrequirepass secret\nuser x on nopass\n",
                     "bind 0.0.0.0\nprotected-mode no\n", "bind 0.0.0.0\n"):
            self.write(text)
            refused += 1
            server.signal(signal.SIGHUP)
            wait_for(self, "the file is refused", lambda: sum(
                "SIGHUP: nothing changed: bind 0.0.0.0 would let anyone" in line
                for line in server.log) == refused)
            self.assertEqual(self.listed(admin), before)
        # Changes that leave every user with a password are accepted.
        for rules in (["bob", ">pw", "on"], ["carol", "on", ">pw", "+ping"], ["default", ">two"],
                      ["dave", "nopass", "off"]):
            self.assertEqual(admin.call("ACL", "SETUSER", *rules).raw, OK)
        self.assertEqual(server.raw().call("PING").raw, b"-NOAUTH Authentication required.\r\n")

    def test_without_protected_mode_anything_goes(self):
        server = self.serve("--bind", "0.0.0.0", "--protected-mode", "no", "--requirepass", "secret")
        admin = server.raw()
        self.assertEqual(admin.call("AUTH", "secret").raw, OK)
        self.assertEqual(admin.call("ACL", "SETUSER", "default", "nopass").raw, OK)
        self.assertEqual(server.raw().call("PING").raw, b"+PONG\r\n")


class Live(ServerCase):
    args = ("--sync", "off", "--workers", "2")

    def setUp(self):
        self.admin = self.connect()
        by_worker = {}
        while len(by_worker) < 2:  # new connections are distributed evenly
            connection = self.connect()
            info = connection.call("CLIENT", "INFO").text.rstrip()
            by_worker.setdefault(info.split(b"worker=")[1], connection)
        self.both = list(by_worker.values())

    def tearDown(self):
        users = [item.text for item in self.admin.call("ACL", "USERS").items]
        self.admin.call("ACL", "DELUSER", "nobody", *(set(users) - {b"default"}))

    def set_user(self, *rules):
        self.assert_reply(self.admin, OK, "ACL", "SETUSER", *rules)

    def log_in(self, name):
        for connection in self.both:
            self.assert_reply(connection, OK, "AUTH", name, "x")

    def test_a_change_holds_at_once_everywhere(self):
        """An acknowledged change holds for the next request on every worker, however busy."""
        self.set_user("alice", "on", "nopass", "~*", "+get")
        self.log_in("alice")
        for _ in range(200):
            self.set_user("alice", "-get", "+set")
            for connection in self.both:
                self.assert_reply(connection, noperm("get"), "GET", "a")
            self.set_user("alice", "-set", "+get")
            for connection in self.both:
                self.assert_reply(connection, noperm("set"), "SET", "a", "1")

    def test_a_pipeline_sees_its_own_changes(self):
        self.admin.send(resp.encode("ACL", "SETUSER", "alice", "on", ">one", "+@all", "~*", "&*")
                        + resp.encode("AUTH", "alice", "one") + resp.encode("ACL", "WHOAMI")
                        + resp.encode("ACL", "SETUSER", "alice", "-get") + resp.encode("GET", "a")
                        + resp.encode("SET", "a", "1") + resp.encode("RESET"))
        for wanted in (OK, OK, b"$5\r\nalice\r\n", OK, noperm("get"), OK, b"+RESET\r\n"):
            self.assertEqual(self.admin.read().raw, wanted)

    def test_deleted_users_are_closed(self):
        self.set_user("alice", "on", "nopass", "+@all", "~*")
        self.set_user("bob", "on", "nopass", "+@all", "~*")
        self.log_in("alice")
        waiting = self.connect()
        self.assert_reply(waiting, OK, "AUTH", "alice", "x")
        waiting.send(resp.encode("DEBUG", "SLEEP", "600"))
        bob = self.connect()
        self.assert_reply(bob, OK, "AUTH", "bob", "x")
        self.assert_reply(self.admin, b":1\r\n", "ACL", "DELUSER", "alice", "nobody")
        for connection in (*self.both, waiting):
            self.assertTrue(connection.is_closed())
        self.assert_reply(bob, b"+PONG\r\n", "PING")
        self.assert_reply(bob, WRONGPASS, "AUTH", "alice", "x")
        # A user that deletes itself still gets the reply.
        bob.send(resp.encode("ACL", "DELUSER", "bob") + resp.encode("PING"))
        self.assertEqual(bob.read_to_end(), b":1\r\n")

    def test_lost_channels_end_subscriptions(self):
        """A subscriber whose user loses the permission for its channel is disconnected, as in Redis."""
        self.set_user("alice", "on", "nopass", "+@all", "~*", "&news.*", "&x")
        listeners = {}
        for name, request in (("channel", ("SUBSCRIBE", "news.a")), ("pattern", ("PSUBSCRIBE", "news.*")),
                              ("shard", ("SSUBSCRIBE", "news.a")), ("other", ("SUBSCRIBE", "x"))):
            listeners[name] = self.connect()
            self.assert_reply(listeners[name], OK, "AUTH", "alice", "x")
            self.assertIn(b"subscribe", listeners[name].call(*request).raw)
        self.log_in("alice")
        default = self.connect()
        self.assertIn(b"subscribe", default.call("SUBSCRIBE", "news.a").raw)
        # The subscribed channel is still permitted.
        self.set_user("alice", "-keys", "&more")
        self.set_user("alice", "resetchannels", "&news.*", "&x")
        self.assert_reply(self.admin, b":3\r\n", "PUBLISH", "news.a", "1")
        for connection in (listeners["channel"], default):
            self.assertIn(b"news.a", connection.read().raw)
        self.set_user("alice", "resetchannels", "&x")
        for name in ("channel", "pattern", "shard"):
            listeners[name].read_to_end()
        self.assert_reply(self.admin, b":1\r\n", "PUBLISH", "x", "1")
        self.assertIn(b"$1\r\nx\r\n", listeners["other"].read().raw)
        # A client that removes its own channels gets the reply first.
        own = self.connect()
        own.call("HELLO", "3", "AUTH", "alice", "x")
        self.assertIn(b"subscribe", own.call("SUBSCRIBE", "x").raw)
        own.send(resp.encode("ACL", "SETUSER", "alice", "resetchannels") + resp.encode("PING"))
        self.assertEqual(own.read_to_end(), OK)
        self.assertEqual(listeners["other"].read_to_end(), b"")
        for connection in self.both:  # these have no subscription
            self.assert_reply(connection, b"+PONG\r\n", "PING")
        self.assert_reply(default, b"*2\r\n$4\r\npong\r\n$0\r\n\r\n", "PING")

    def test_clients_show_their_user(self):
        wait_for(self, "the last test's connections are gone", lambda: all(
            row["user"] == "default" for row in client_rows(self.admin)))
        self.set_user("alice", "on", "nopass", "+@all")
        self.log_in("alice")
        lines = self.admin.call("CLIENT", "LIST").text.decode().splitlines()
        self.assertEqual(sum(" user=alice " in line for line in lines), 2)
        self.assertEqual(sum(" user=default " in line for line in lines), len(lines) - 2)
        self.assert_reply(self.admin, b"-ERR No such user 'nobody'\r\n", "CLIENT", "KILL", "USER",
                          "nobody")
        self.assert_reply(self.admin, b":2\r\n", "CLIENT", "KILL", "USER", "alice")
        for connection in self.both:
            self.assertTrue(connection.is_closed())

    def test_the_log_is_that_of_all_workers(self):
        self.set_user("alice", "on", "nopass", "+get", "~a")
        self.log_in("alice")
        self.assert_reply(self.admin, OK, "ACL", "LOG", "RESET")
        for key, connection in zip("bc", self.both):
            self.assertTrue(connection.call("GET", key).is_error)
        self.assertTrue(self.both[1].call("AUTH", "mallory", "x").is_error)
        entries = [{name.text: value.text for name, value in zip(entry.items[::2], entry.items[1::2])}
                   for entry in self.admin.call("ACL", "LOG").items]
        self.assertEqual([(entry[b"reason"], entry[b"object"], entry[b"username"])
                          for entry in entries],
                         [(b"auth", b"AUTH", b"mallory"), (b"key", b"c", b"alice"),
                          (b"key", b"b", b"alice")])
        for entry in entries:
            self.assertLess(float(entry[b"age-seconds"]), 3600)
            self.assertIn(b" user=alice ", entry[b"client-info"])
        self.assertEqual(len(self.admin.call("ACL", "LOG", "2").items), 2)
        self.assert_reply(self.admin, OK, "CONFIG", "SET", "acllog-max-len", "0")
        self.assert_reply(self.admin, OK, "ACL", "LOG", "RESET")
        self.assertTrue(self.both[0].call("GET", "b").is_error)
        self.assert_reply(self.admin, b"*0\r\n", "ACL", "LOG")
        self.assert_reply(self.admin, OK, "CONFIG", "SET", "acllog-max-len", "128")

    def test_the_default_user_and_requirepass(self):
        self.assert_reply(self.admin, OK, "CONFIG", "SET", "requirepass", "one")
        self.assert_reply(self.connect(), WRONGPASS, "AUTH", "two")
        self.set_user("default", ">two")
        fresh = self.connect()
        self.assert_reply(fresh, b"-NOAUTH Authentication required.\r\n", "PING")
        self.assert_reply(fresh, OK, "AUTH", "two")
        self.assert_reply(self.connect(), OK, "AUTH", "one")
        # requirepass replaces all passwords of the default user, also if that user has rules.
        self.assert_reply(self.admin, OK, "CONFIG", "SET", "requirepass", "three")
        self.assert_reply(self.connect(), WRONGPASS, "AUTH", "two")
        self.assert_reply(self.connect(), OK, "AUTH", "three")
        self.set_user("default", "-keys")
        self.assert_reply(self.admin, noperm("keys"), "KEYS", "*")
        self.set_user("default", "reset", "on", "nopass", "~*", "&*", "+@all")
        self.assert_reply(self.connect(), b"+PONG\r\n", "PING")
        self.assert_reply(self.admin, OK, "CONFIG", "SET", "requirepass", "")

    def test_the_default_user_may_be_off(self):
        self.set_user("alice", "on", "nopass", "+@all", "~*", "&*")
        self.set_user("default", "off")
        fresh = self.connect()
        self.assert_reply(fresh, b"-NOAUTH Authentication required.\r\n", "PING")
        self.assert_reply(fresh, WRONGPASS, "AUTH", "default", "x")
        self.assert_reply(fresh, OK, "AUTH", "alice", "x")
        self.assert_reply(fresh, OK, "ACL", "SETUSER", "default", "on")

    def test_a_wrong_rule_changes_nothing(self):
        self.set_user("alice", "on", "nopass", "+get", "~*")
        before = self.admin.call("ACL", "GETUSER", "alice").raw
        self.assertTrue(self.admin.call("ACL", "SETUSER", "alice", "-get", "+nosuch").is_error)
        self.assertTrue(self.admin.call("ACL", "SETUSER", "bob", "+nosuch").is_error)
        self.assertEqual(self.admin.call("ACL", "GETUSER", "alice").raw, before)
        self.assertTrue(self.admin.call("ACL", "GETUSER", "bob").is_null)
        long = ["~%d%s" % (i, "x" * 1000) for i in range(9)]
        self.assertIn(b"at most 8192 bytes", self.admin.call("ACL", "SETUSER", "bob", *long).raw)


class Many(FolderCase):
    def test_users_are_bounded(self):
        with open(self.path("conf"), "w", encoding="utf-8") as file:
            file.writelines(f"user u{i} on nopass +ping\n" for i in range(9998))
        with Heatsink("--sync", "off", "--config", self.path("conf")) as server:
            connection = server.raw()
            self.assertEqual(connection.call("ACL", "SETUSER", "last", "on").raw, OK)
            self.assertEqual(connection.call("ACL", "SETUSER", "more", "on").raw,
                             b"-ERR at most 10000 users are possible\r\n")
            self.assertEqual(connection.call("ACL", "SETUSER", "u5", "off").raw, OK)
            self.assertEqual(connection.call("AUTH", "u9997", "x").raw, OK)
        with open(self.path("conf"), "a", encoding="utf-8") as file:
            file.write("user a on\nuser b on\n")
        run = subprocess.run([heatsink_path(), "serve", "--check-config", "--config",
                              self.path("conf")], capture_output=True, text=True, check=False)
        self.assertEqual(run.returncode, 1)
        self.assertIn(os.path.basename(self.path("conf")) + ":10000: user 'b'", run.stderr)


if __name__ == "__main__":
    unittest.main()
