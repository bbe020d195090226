"""Goal: rules come from the file, from flags and from HEAT RULE; they hold on all workers when they are acknowledged;
CONFIG REWRITE saves them; a wrong rule is refused with the reason.

Method: servers with two workers and configuration files of their own, restarted and reloaded, and a load of reads and
writes that goes on while rules change. The unit test (test_contract) covers the meaning of each word and all error
texts; other tests cover what is done under a rule.
"""
import os
import signal
import subprocess
import threading
import unittest

import resp
from cases import FolderCase, ServerCase
from checks import wait_for
from servers import Heatsink, heatsink_path

SANITIZERS = ("address",)  # one client at a time: no data race is possible

OK = b"+OK\r\n"
OPTIONS = ["stale", "ttl", "negative-ttl", "stale-while-revalidate", "stale-if-error", "jitter", "refresh-ahead", "admit", "copies",
           "replica-reads", "public"]
CHANGES = 300


def pairs(reply):
    """A RESP2 map (a flat array) as a dict."""
    words = [None if item.is_null else item.text.decode("latin-1") for item in reply.items]
    found = dict(zip(words[::2], words[1::2]))
    assert 2 * len(found) == len(words), f"a name is there twice: {words}"
    return found


def listed(connection):
    return [pairs(item)["rule"] for item in connection.call("HEAT", "RULE", "LIST").items]


def rule_of(connection, key):
    return pairs(connection.call("HEAT", "RULE", "TEST", key))["rule"]


def config(connection, name):
    return pairs(connection.call("CONFIG", "GET", name)).get(name)


class Files(FolderCase):
    def write(self, text):
        with open(self.path("conf"), "w", encoding="utf-8") as file:
            file.write(text)
        return self.path("conf")

    def read(self):
        with open(self.path("conf"), encoding="utf-8") as file:
            return file.read()

    def ours(self):
        """The lines of the file that are rules or comments."""
        return [line for line in self.read().splitlines()
                if line.startswith(("#", "rule", "mitigate"))]

    def serve(self, *flags):
        server = Heatsink("--sync", "off", "--workers", "2", *flags)
        self.addCleanup(server.close)
        return server

    def test_lines_and_flags(self):
        self.write("# ours\nrule user:* cache stale=1s public\n\nRULE '*' cache\n"
                   'rule "two words:*" strict\nrule #odd cache ttl=5m\ncache-bytes 1mb\n'
                   "cache-entry-bytes 0\nmitigate observe\n")
        server = self.serve("--config", self.path("conf"), "--rule", "* cache stale=2s",
                            "--rule=a:? cache stale-while-revalidate=5s", "--rule", "a:* cache")
        connection = server.raw()
        rules = ["user:* cache stale=1s public=yes", '"two words:*" strict', "#odd cache ttl=5m",
                 "* cache stale=2s", "a:? cache stale-while-revalidate=5s", "a:* cache"]
        self.assertEqual(listed(connection), rules)
        self.assertEqual(config(connection, "rule"), "\n".join(rules))
        self.assertEqual(config(connection, "cache-bytes"), "1048576")
        self.assertEqual(config(connection, "cache-entry-bytes"), "0")
        self.assertEqual(config(connection, "mitigate"), "observe")
        self.assertEqual(connection.call("HEAT", "MITIGATE").text, b"observe")
        for key, rule in (("user:1", rules[0]), ("two words:x", rules[1]), ("#odd", rules[2]),
                          ("#od", rules[3]), ("a:1", rules[5]), ("a:12", rules[5])):
            self.assertEqual(rule_of(connection, key), rule, key)

    def test_a_flag_is_later_than_a_line(self):
        self.write("rule a:* cache\n")
        connection = self.serve("--config", self.path("conf"), "--rule", "a:? cache").raw()
        self.assertEqual(listed(connection), ["a:* cache", "a:? cache"])
        self.assertEqual(rule_of(connection, "a:1"), "a:? cache")

    def check_fails(self, *args):
        run = subprocess.run([heatsink_path(), "serve", "--check-config", *args],
                             capture_output=True, text=True, check=False)
        self.assertEqual(run.returncode, 1, args)
        self.assertEqual(len(run.stderr.splitlines()), 1, run.stderr)
        return run.stderr.strip()

    def test_wrong_lines(self):
        """The error names file, line, word and what is allowed; the exit status is 1."""
        for text, line, said in (
                ("rule", 1, "a rule needs a glob and a contract: user:* cache stale=100ms"),
                ("\nrule user:* cahce", 2,
                 "rule 'user:*', word 2 'cahce': no such contract; did you mean 'cache'?"),
                ("rule user:* cache stale=1s\nrule a cache stale=1s tll=4s", 2,
                 "rule 'a', word 4 'tll=4s': no such option of cache; did you mean 'ttl'?"),
                ('rule "a cache', 1, "unbalanced quotes in the value of 'rule'"),
                ("rule a strict public", 1, "rule 'a', word 3 'public': strict takes no options")):
            with self.subTest(text):
                path = self.write(text + "\n")
                self.assertEqual(self.check_fails("--config", path),
                                 f"heatsink: {path}:{line}: {said}")
        for flag, said in (
                ("a", "a rule needs a glob and a contract: user:* cache stale=100ms"),
                ("", "a rule needs a glob and a contract: user:* cache stale=100ms"),
                ('"a', "rule: unbalanced quotes in the line"),
                ("a cache stale=2d",
                 "rule 'a', word 3 'stale=2d': out of bounds: stale is from 1ms to 1d")):
            self.assertEqual(self.check_fails("--rule", flag), f"heatsink: {said}")
        self.assertIn("did you mean 'rule'?", self.check_fails("--rul", "a cache"))
        self.assertIn("--rule needs a value", self.check_fails("--rule"))
        self.assertIn("must be one of the following: on, observe, off",
                      self.check_fails("--mitigate", "maybe"))

    def test_as_many_as_there_may_be(self):
        lines = [f"rule k{i}:* cache stale={i + 1}ms\n" for i in range(1024)]
        path = self.write("".join(lines))
        connection = self.serve("--config", path).raw()
        self.assertEqual(len(listed(connection)), 1024)
        self.assertEqual(rule_of(connection, "k1023:x"), "k1023:* cache stale=1024ms")
        self.assertEqual(connection.call("HEAT", "RULE", "SET", "more", "cache").text,
                         b"ERR at most 1024 rules are allowed")
        self.write("".join(lines) + "rule more cache\n")
        self.assertEqual(self.check_fails("--config", path),
                         f"heatsink: {path}:1025: at most 1024 rules are allowed")

    def test_rewrite_keeps_rules(self):
        self.write("# first\nrule user:* cache\nrule gone:* cache\nrule a:* cache\n"
                   "# between\nRULE a:? cache stale=1s\nrule * cache\n# last\n")
        server = self.serve("--config", self.path("conf"), "--rule", "flag cache")
        connection = server.raw()
        for words in (("user:*", "cache", "stale=1500ms"), ("a:*", "cache", "ttl=1h"),
                      ("my keys:\"'\\*\x00\xff", "strict"), ("new", "cache", "public")):
            self.assertEqual(
                connection.call("HEAT", "RULE", "SET",
                                *(word.encode("latin-1") for word in words)).raw, OK)
        self.assertEqual(connection.call("HEAT", "RULE", "DEL", "gone:*").raw, OK)
        self.assertEqual(connection.call("HEAT", "MITIGATE", "off").raw, OK)
        before = listed(connection)
        won = {key: rule_of(connection, key) for key in ("a:1", "a:12", "user:1", "x", "flag")}
        self.assertEqual(won["a:1"], "a:* cache ttl=1h")
        self.assertEqual(connection.call("CONFIG", "REWRITE").raw, OK)
        # Lines stay in place. Of a:* and a:? the later line wins, so a:*, which was set later, moves behind.
        self.assertEqual(self.ours(),
                         ["# first", "rule user:* cache stale=1500ms", "rule a:? cache stale=1s",
                          "# between", "rule a:* cache ttl=1h", "rule * cache", "# last",
                          "mitigate off", "rule flag cache",
                          'rule "my keys:\\"\'\\\\*\\x00\\xff" strict', "rule new cache public=yes"])
        again = self.serve("--config", self.path("conf")).raw()
        self.assertEqual(sorted(listed(again)), sorted(before))
        for key, rule in won.items():
            self.assertEqual(rule_of(again, key), rule, key)
        self.assertEqual(again.call("HEAT", "MITIGATE").text, b"off")
        once = self.ours()
        self.assertEqual(again.call("CONFIG", "REWRITE").raw, OK)
        self.assertEqual(self.ours(), once)

    def test_reload(self):
        """SIGHUP replaces the rules by those of file and flags; a file with an error changes nothing."""
        self.write("rule a cache\nrule b cache\n")
        server = self.serve("--config", self.path("conf"), "--rule", "flag strict")
        connection = server.raw()
        connection.call("HEAT", "RULE", "SET", "live", "cache")
        self.write("rule a cache\nrule b cach\n")
        server.signal(signal.SIGHUP)
        server.wait_log(r"nothing changed: .*conf:2: .*did you mean 'cache'")
        self.assertEqual(listed(connection), ["a cache", "b cache", "flag strict", "live cache"])
        self.write("rule c cache\nrule a cache stale=1s\nmitigate observe\n")
        server.signal(signal.SIGHUP)
        server.wait_log("SIGHUP: rules changed")
        server.wait_log("SIGHUP: reloaded")
        self.assertEqual(listed(connection), ["c cache", "a cache stale=1s", "flag strict"])
        self.assertEqual(connection.call("HEAT", "MITIGATE").text, b"observe")


class Live(ServerCase):
    args = ("--sync", "off", "--workers", "2")

    def setUp(self):
        self.admin = self.connect()

    def tearDown(self):
        for row in self.admin.call("HEAT", "RULE", "LIST").items:
            glob = pairs(row)["rule"].split(" ")[0]
            self.assert_reply(self.admin, OK, "HEAT", "RULE", "DEL", glob)

    def test_set_list_test_delete(self):
        self.assert_reply(self.admin, b"*0\r\n", "HEAT", "RULE", "LIST")
        self.assert_reply(self.admin, OK, "HEAT", "RULE", "SET", "user:*", "CACHE", "stale=2s",
                          "jitter=0", "copies=auto", "public")
        self.assert_reply(self.admin, OK, "heat", "rule", "set", "user:me", "strict")
        first, second = (pairs(row) for row in self.admin.call("HEAT", "RULE", "LIST").items)
        test = pairs(self.admin.call("HEAT", "RULE", "TEST", "user:7"))
        self.assertEqual(list(test), ["rule", "contract", *OPTIONS])
        self.assertEqual(list(first)[:len(test)], list(test))
        self.assertIn("hits", first)  # counters follow the options
        self.assertEqual({name: first[name] for name in test}, test)
        self.assertEqual(list(test.values()),
                         ["user:* cache stale=2s jitter=0% copies=auto public=yes", "cache", "2s",
                          "1m", "1s", "0", "0", "0%", "1", "hot", "auto", "no", "yes"])
        self.assertEqual(second, {"rule": "user:me strict", "contract": "strict"})
        self.assertEqual(pairs(self.admin.call("HEAT", "RULE", "TEST", "user:me")), second)
        for key in ("other", "", "user"):
            self.assertEqual(pairs(self.admin.call("HEAT", "RULE", "TEST", key)),
                             {"rule": None, "contract": "strict"})
        self.assert_reply(self.admin, OK, "HEAT", "RULE", "SET", "user:*", "cache")
        self.assertEqual(listed(self.admin), ["user:me strict", "user:* cache"])
        self.assert_reply(self.admin, OK, "HEAT", "RULE", "DEL", "user:*")
        self.assertEqual(listed(self.admin), ["user:me strict"])

    def test_resp3_maps(self):
        connection = self.connect()
        connection.call("HELLO", "3")
        self.assert_reply(connection, b"%2\r\n$4\r\nrule\r\n_\r\n$8\r\ncontract\r\n$6\r\nstrict\r\n",
                          "HEAT", "RULE", "TEST", "k")
        connection.call("HEAT", "RULE", "SET", "k", "strict")
        self.assert_reply(connection, b"*1\r\n%2\r\n$4\r\nrule\r\n$8\r\nk strict\r\n$8\r\ncontract\r\n"
                          b"$6\r\nstrict\r\n", "HEAT", "RULE", "LIST")

    def test_refused(self):
        self.assert_reply(self.admin, OK, "HEAT", "RULE", "SET", "user:*", "cache")
        for words, said in (
                (("RULE", "SET"), "a rule needs a glob and a contract: user:* cache stale=100ms"),
                (("RULE", "SET", "a"), "a rule needs a glob and a contract: user:* cache stale=100ms"),
                (("RULE", "SET", "a", "cache", "stael=1s"),
                 "rule 'a', word 3 'stael=1s': no such option of cache; did you mean 'stale'?"),
                (("RULE", "SET", "a\r\nb", "cache", "refresh-ahead=x\r\n"),
                 "rule 'a\\r\\nb', word 3 'refresh-ahead=x\\r\\n': a number has up to three decimals, as in "
                 "1.5; refresh-ahead is from 0 to 10"),
                (("RULE", "DEL", "usr:*"),
                 "HEAT RULE DEL: no rule has the glob 'usr:*'; did you mean 'user:*'?"),
                (("RULE", "DEL", "nothing like it"),
                 "HEAT RULE DEL: no rule has the glob 'nothing like it'"),
                (("RULE", "DEL"), "wrong number of arguments: HEAT RULE DEL glob. Try HEAT HELP."),
                (("RULE", "DEL", "a", "b"), "wrong number of arguments: HEAT RULE DEL glob. Try HEAT HELP."),
                (("RULE", "LIST", "a"), "wrong number of arguments: HEAT RULE LIST. Try HEAT HELP."),
                (("RULE", "TEST"), "wrong number of arguments: HEAT RULE TEST key. Try HEAT HELP."),
                (("RULE", "SETT", "a", "cache"),
                 "HEAT RULE: the first word is 'SETT'; did you mean SET? it must be DEL, LIST, SET or TEST. "
                 "Try HEAT HELP."),
                (("RULE", "nonsense"),
                 "HEAT RULE: the first word is 'nonsense'; it must be DEL, LIST, SET or TEST. Try HEAT HELP."),
                (("RULE",), "wrong number of arguments for 'heat|rule' command. Try HEAT HELP."),
                (("MITIGATE", "obsverve"),
                 "HEAT MITIGATE: argument(s) must be one of the following: on, observe, off. Try HEAT HELP."),
                (("MITIGATE", "x"),
                 "HEAT MITIGATE: argument(s) must be one of the following: on, observe, off. Try HEAT HELP."),
                (("MITIGATE", "on", "off"),
                 "wrong number of arguments: HEAT MITIGATE [ON | OBSERVE | OFF]. Try HEAT HELP.")):
            with self.subTest(words):
                self.assertEqual(self.admin.call("HEAT", *words).text.decode(), "ERR " + said)
        self.assertEqual(listed(self.admin), ["user:* cache"])

    def test_config(self):
        self.assertEqual(
            self.admin.call("CONFIG", "SET", "rule", "a cache").text,
            b"ERR CONFIG SET failed (possibly related to argument 'rule') - rules are changed one at "
            b"a time, with HEAT RULE SET and HEAT RULE DEL")
        self.assertEqual(config(self.admin, "rule"), "")
        self.assert_reply(self.admin, OK, "CONFIG", "SET", "cache-bytes", "0", "cache-entry-bytes",
                          "2kb", "mitigate", "off")
        self.assertEqual(config(self.admin, "cache-bytes"), "0")
        self.assertEqual(config(self.admin, "cache-entry-bytes"), "2048")
        self.assertEqual(self.admin.call("HEAT", "MITIGATE").text, b"off")
        self.assert_reply(self.admin, OK, "HEAT", "MITIGATE", "ON")
        self.assertEqual(config(self.admin, "mitigate"), "on")

    def test_help(self):
        text = b"\n".join(item.text for item in self.admin.call("HEAT", "HELP").items)
        self.assertIn(b"RULE ", text)
        self.assertIn(b"MITIGATE ", text)

    def test_changes_under_load(self):
        """Every client reads its own last write while rules for its keys come and go and mitigation is switched; at
        the end the rules are those of the last change."""
        stop, wrong, turns = threading.Event(), [], [0] * 4

        def write_and_read(number):
            with resp.Connection(self.server.port) as connection:
                while not stop.is_set():
                    value = b"%d" % turns[number]
                    key = "load:%d:%d" % (number, turns[number] % 8)
                    said = [reply.raw for reply in connection.call_all(
                        [("SET", key, value), ("GET", key), ("GET", key)])]
                    if said != [OK] + 2 * [b"$%d\r\n%s\r\n" % (len(value), value)]:
                        wrong.append((key, value, said))
                        return
                    turns[number] += 1

        threads = [threading.Thread(target=write_and_read, args=(i,)) for i in range(len(turns))]
        for thread in threads:
            thread.start()
        try:
            for turn in range(CHANGES):
                self.assert_reply(self.admin, OK, "HEAT", "RULE", "SET", "load:%d:*" % (turn % 5),
                                  *(("cache", "stale=%dms" % (turn + 1), "admit=all")
                                    if turn % 3 else ("strict",)))
                if turn % 7 == 6:
                    self.assert_reply(self.admin, OK, "HEAT", "RULE", "DEL",
                                      "load:%d:*" % (turn % 5))
                if turn % 11 == 0:
                    self.assert_reply(self.admin, OK, "HEAT", "MITIGATE",
                                      ("on", "observe", "off")[turn % 3])
            seen = list(turns)
            wait_for(self, "everybody goes on", lambda: wrong or all(
                later > sooner for later, sooner in zip(turns, seen)))
        finally:
            stop.set()
            for thread in threads:
                thread.join()
            self.assert_reply(self.admin, OK, "HEAT", "MITIGATE", "on")
        self.assertEqual(wrong, [])
        self.assertEqual(rule_of(self.admin, "load:4:x"),
                         "load:4:* cache stale=%dms admit=all" % CHANGES)


if __name__ == "__main__":
    unittest.main()
