"""Goal: no output shows a password: SLOWLOG, CLIENT LIST, INFO, HEAT, ACL LOG, HTTP and the log.

Method: a heatsink in front of a redis-server with passwords everywhere: heatsink's own, the server's in the URL, the
key file's. Requests with passwords of every kind are sent, right and wrong ones, alone and in transactions, and all
output is searched for them.
"""
import http.client
import signal
import unittest

from cases import FolderCase
from checks import wait_for
from servers import GUARD_S, Heatsink, Redis

SANITIZERS = ("address",)  # one client at a time: no data race is possible

SECRET = "s3cr3t"
HASH = "8d2b2eb5e0bcfc3d5d4a1e5b4f7a1d2f"

REQUESTS = """AUTH SECRET|AUTH default SECRET|AUTH nosuch SECRET|HELLO 2 AUTH default SECRET
    HELLO 3 AUTH nosuch SECRET SETNAME x|ACL SETUSER bob on >SECRET +@all
    ACL SETUSER bob <SECRET nosuch|ACL DRYRUN default AUTH SECRET
    ACL DRYRUN bob CONFIG SET requirepass SECRET|CONFIG SET requirepass SECRET
    CONFIG SET maxclients 100 tls-key-file-pass SECRET|CONFIG SET engine-password SECRET
    CONFIG SET masterauth SECRET|CONFIG SET engine redis://u:SECRET@127.0.0.1
    CONFIG SET requirepass SECRET nosuch 1
    MIGRATE 127.0.0.1 1 key 0 10 AUTH SECRET|MIGRATE 127.0.0.1 1 key 0 10 COPY AUTH2 user SECRET
    MIGRATE 127.0.0.1 1  0 10 REPLACE AUTH SECRET KEYS key
    COMMAND GETKEYS MIGRATE 127.0.0.1 1 key 0 10 AUTH SECRET
    SENTINEL SET mymaster auth-pass SECRET""".replace("\n", "|").split("|")

ASKED = """SLOWLOG GET -1|CLIENT LIST|CLIENT INFO|INFO everything|INFO commandstats|ACL LIST|ACL LOG
    ACL GETUSER bob|HEAT TOP|HEAT PREFIXES|HEAT PLAN|HEAT PARTITIONS|HOTKEYS GET
    COMMAND GETKEYS GET a""".replace("\n", "|").split("|")


class Secrets(FolderCase):
    def test_passwords_are_hidden(self):
        redis = Redis("--requirepass", SECRET)
        self.addCleanup(redis.close)
        server = Heatsink("--engine", f"redis://:{SECRET}@127.0.0.1:{redis.port}", "--requirepass",
                          SECRET, "--slowlog-log-slower-than", "0", "--slowlog-max-len", "10000",
                          "--log-level", "debug")
        self.addCleanup(server.close)
        server.wait_engine()
        client = server.raw()
        for request in REQUESTS:
            words = [SECRET.join(word.split("SECRET")) for word in request.strip().split(" ")]
            for turn in range(2):
                if turn:
                    client.call("MULTI")
                client.call(*words)
                if turn:
                    client.call("EXEC")
        self.assertEqual(client.call("HELLO", "2", "AUTH", "default", SECRET).items[0].text, b"server")
        entries = client.call("SLOWLOG", "GET", "-1").items
        shown = {entry.items[3].items[0].text.upper() for entry in entries}
        self.assertLessEqual({b"AUTH", b"HELLO", b"ACL", b"CONFIG", b"MIGRATE"}, shown)
        for request in ASKED:
            reply = client.call(*request.split())
            self.assertNotIn(SECRET.encode(), reply.raw, request)
            self.assertNotIn(b"unknown", reply.raw[:20], request)
        for path in ("/metrics", "/api/heat", "/api/partitions", "/api/history", "/readyz"):
            connection = http.client.HTTPConnection("127.0.0.1", server.http_port, timeout=GUARD_S)
            connection.request("GET", path)
            self.assertNotIn(SECRET.encode(), connection.getresponse().read(), path)
            connection.close()
        self.assertNotIn(SECRET, "\n".join(server.log))

    def refusals(self, server):
        return [line for line in server.log if "nothing changed" in line]

    def test_a_file_that_is_wrong(self):
        """The log names the wrong rule, without the password in it."""
        path = self.path("conf")
        with open(path, "w", encoding="utf-8") as file:
            file.write("sync off\n")
        server = Heatsink("--config", path)
        self.addCleanup(server.close)
        for number, rule in enumerate((f"<{SECRET}", f"!{HASH}", f"#{HASH}"), 1):
            with open(path, "w", encoding="utf-8") as file:
                file.write(f"sync off\nuser alice on {rule}\n")
            server.signal(signal.SIGHUP)
            wait_for(self, "it is refused", lambda: len(  # pylint: disable=cell-var-from-loop
                self.refusals(server)) == number)
            self.assertIn(f"user 'alice': '{rule[0]}(redacted)': The password",
                          self.refusals(server)[-1])
        self.assertNotIn(SECRET, "\n".join(server.log))
        self.assertNotIn(HASH, "\n".join(server.log))


if __name__ == "__main__":
    unittest.main()
