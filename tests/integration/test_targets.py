"""Goal: storm and top reach a server as any client does: with TLS, as a user, by URL; the error says what is wrong and
what to do.

Method: a heatsink and a redis-server with plain and TLS ports that require certificates and have users; both commands
run with right and wrong options. The servers' own data shows how they were reached.
"""
import json
import os
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

import servers
import tls
from fake import FakeServer
from servers import GUARD_S, heatsink_path

SANITIZERS = ("address",)


class Targets(unittest.TestCase):
    """The servers for both commands."""

    @classmethod
    def setUpClass(cls):
        cls.certificates = tls.Certificates()
        cls.addClassCleanup(cls.certificates.close)
        cls.heatsink = cls.enterClassContext(tls.server(cls.certificates))
        port = servers.ReservedPort()
        cls.addClassCleanup(port.release)
        cls.redis_tls_port = port.number
        cls.redis = cls.enterClassContext(
            servers.Redis("--tls-port", port.number, *cls.certificates.options()))
        for server in (cls.heatsink, cls.redis):
            server.client().execute_command("ACL", "SETUSER", "app", "on", ">se:cret", "~*", "+@all")
            server.client().execute_command("ACL", "SETUSER", "reader", "on", ">look", "~*", "+@read")
            server.client().execute_command("ACL", "SETUSER", "guest", "on", "nopass", "~*", "+@all")

    def tls(self, ca="ca", name="client"):
        path = self.certificates.path
        own = ["--tls-cert-file", path(f"{name}.pem"), "--tls-key-file", path(f"{name}.key")]
        return ["--tls-ca-cert-file", path(f"{ca}.pem"), *(own if name else [])]

    def run_command(self, command, target, *args, **env):
        words = {"storm": ["--count", "200", "--keys", "10", "--json"], "top": ["--once", "--timeout", str(GUARD_S)]}
        full = {**os.environ, "LC_ALL": "C.UTF-8", **env}
        done = subprocess.run([heatsink_path(), command, *words[command], "--target", target, *map(str, args)],
                              capture_output=True, text=True, timeout=GUARD_S, env=full, check=False)
        return done.returncode, done.stdout, done.stderr

    def works(self, command, target, *args, **env):
        code, out, err = self.run_command(command, target, *args, **env)
        self.assertEqual((code, err), (0, ""), out)
        if command == "storm":
            result = json.loads(out)
            self.assertEqual((result["answered"], result["errors"]), (200, {}))
        else:
            self.assertIn("OPS/S", out)
        return out

    def fails(self, command, said, target, *args, **env):
        code, out, err = self.run_command(command, target, *args, **env)
        self.assertEqual((code, out), (1, ""))
        self.assertTrue(err.startswith(f"heatsink {command}: "), err)
        self.assertEqual(err.count("\n"), 1, err)
        self.assertRegex(err, said)
        return err

    def places(self, command):
        """(URL without scheme, plain port) of each server that this command can use."""
        ours = (f"localhost:{self.heatsink.tls_port}", self.heatsink.port)
        return [ours] if command == "top" else [ours, (f"localhost:{self.redis_tls_port}", self.redis.port)]


class Tls(Targets):
    def test_with_the_right_certificates(self):
        for command in ("storm", "top"):
            for place, _ in self.places(command):
                with self.subTest(command=command, place=place):
                    self.works(command, "rediss://" + place, *self.tls())
                    self.works(command, place, "--tls", *self.tls())
                    self.works(command, "rediss://" + place, "--tls-ca-cert-dir",
                               self.certificates.path("cas"), *self.tls()[2:])
                    self.works(command, "rediss://" + place, "--tls-skip-verify", *self.tls()[2:])

    def test_large_values_and_verify(self):
        for place, _ in self.places("storm"):
            code, out, err = self.run_command(
                "storm", "rediss://" + place, *self.tls(), "--verify", "--value-size", "300kb", "--writes",
                "0.5", "--pipeline", 4, "--prefix", "large:")
            self.assertEqual(code, 0, out + err)
            self.assertTrue(json.loads(out)["verify"]["ok"])

    def test_no_trusted_certificate(self):
        for command in ("storm", "top"):
            for place, _ in self.places(command):
                with self.subTest(command=command, place=place):
                    url = "rediss://" + place
                    self.fails(command, "TLS: .*certificate", url, *self.tls(ca="other-ca"))
                    self.fails(command, "TLS: .*certificate", url, *self.tls()[2:])
                    # The server requires a certificate of its own authority.
                    self.fails(command, "TLS: .*(certificate|unknown ca)|closed the connection .*TLS handshake: .*certificate", url, *self.tls(name=None))
                    self.fails(command, "TLS: .*(certificate|unknown ca)|closed the connection .*TLS handshake: .*certificate", url, *self.tls(name="stranger"))

    def test_the_wrong_port(self):
        for command in ("storm", "top"):
            for place, plain in self.places(command):
                with self.subTest(command=command, place=place):
                    self.fails(command, "needs --tls, rediss://|speaks TLS only: connect with TLS", place)
                    self.fails(command, "needs no --tls, and redis://", f"rediss://localhost:{plain}", *self.tls())

    def test_files_that_are_none(self):
        for command in ("storm", "top"):
            place, _ = self.places(command)[0]
            self.fails(command, "TLS: .*/nowhere.pem", "rediss://" + place, "--tls-ca-cert-file", "/nowhere.pem")
            self.fails(command, "--tls-skip-verify needs TLS: add --tls", place, "--tls-skip-verify")
            self.fails(command, "--tls-ca-cert-file needs TLS: add --tls", place, *self.tls())


class Users(Targets):
    def test_as_a_user(self):
        with tempfile.NamedTemporaryFile("w") as file:
            file.write("se:cret\n")
            file.flush()
            for command in ("storm", "top"):
                for place, plain in self.places(command):
                    with self.subTest(command=command, place=place):
                        name, port = place, f"localhost:{plain}"
                        self.works(command, port, "--user", "app", "--password", "se:cret")
                        self.works(command, port, "--user", "app", "--password-file", file.name)
                        self.works(command, port, "--user", "app", HEATSINK_PASSWORD="se:cret")
                        # The URL's password has precedence over the environment's, a flag over both.
                        self.works(command, f"redis://app:se%3Acret@{port}", HEATSINK_PASSWORD="no")
                        self.works(command, f"redis://app:no@{port}", "--password", "se:cret")
                        self.works(command, f"rediss://app:se%3Acret@{name}", *self.tls())

    def test_a_user_without_a_password(self):
        for command in ("storm", "top"):
            for _, plain in self.places(command):
                with self.subTest(command=command, port=plain):
                    self.works(command, f"localhost:{plain}", "--user", "guest")
                    self.works(command, f"redis://guest:@localhost:{plain}")
                    # An empty flag has precedence, too; the environment's password would be refused.
                    self.works(command, f"localhost:{plain}", "--password", "", HEATSINK_PASSWORD="x" * 513)

    def test_unknown_host_name(self):
        for command in ("storm", "top"):
            for _, plain in self.places(command):
                port = f"localhost:{plain}"
                for user, password in (("nobody", "se:cret"), ("app", "wrong")):
                    with self.subTest(command=command, port=port, user=user):
                        err = self.fails(command, f"cannot log in as '{user}': check --user, --password-file, "
                                         r"\$HEATSINK_PASSWORD and --password \(WRONGPASS", port,
                                         "--user", user, "--password", password)
                        self.assertNotIn(password, err)

    def test_a_password_is_never_shown(self):
        _, plain = self.places("storm")[0]
        url = f"redis://app:se%3Acret@localhost:{plain}"
        for command in ("storm", "top"):
            out = self.works(command, url)
            self.assertIn("app:***@localhost", out)
            self.assertNotIn("cret", out)
            for bad in (f"app:se:cret@localhost:{plain}", f"redis://app:se:cret@localhost:{plain}/x/y"):
                self.assertNotIn("cret", self.fails(command, "--target: ", bad))

    def test_permissions_of_a_user(self):
        place = f"localhost:{self.redis.port}"
        code, out, _ = self.run_command("storm", place, "--user", "reader", "--password", "look",
                                        "--command", "set")
        self.assertEqual((code, json.loads(out)["errors"]), (3, {"NOPERM": 200}))
        self.works("storm", place, "--user", "reader", "--password", "look", "--command", "get")


class Places(Targets):
    def test_a_database(self):
        self.works("storm", f"redis://localhost:{self.redis.port}/5", "--command", "set", "--prefix", "five:")
        self.assertGreater(len(self.redis.client(db=5).keys("five:*")), 0)
        self.assertEqual(self.redis.client().keys("five:*"), [])

    def test_a_port_alone(self):
        for command in ("storm", "top"):
            self.works(command, str(self.heatsink.port))

    def test_invalid_target(self):
        for command in ("storm", "top"):
            for target in ("somewhere", "host:", "0", "70000", "redis:/x", "http://x:1", "redis://a,b"):
                with self.subTest(command=command, target=target):
                    self.fails(command, "--target: ", target)
        self.fails("top", "one heatsink server, not to a Cluster", "cluster://localhost:1")
        self.fails("storm", "only database 0", "redis://localhost:1/3", "--cluster")
        self.fails("storm", "could not connect: .*cluster support disabled", f"cluster://localhost:{self.redis.port}")

    def test_an_endpoint_that_knows_no_hello(self):
        """The endpoint has no HELLO and needs no password, although one is given."""
        def refuse(_server, _connection, _number, args):
            if args[0] == b"AUTH":
                return b"-ERR AUTH <password> called without any password configured for the default user.\r\n"
            return b"-ERR unknown command\r\n" if args[0] == b"HELLO" else None

        with FakeServer(refuse) as server:
            self.works("storm", f"127.0.0.1:{server.port}", "--password", "x", "--command", "get")


if __name__ == "__main__":
    unittest.main()
