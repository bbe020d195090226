"""Goal: heatsink reaches the servers behind it over TLS, and only servers with a trusted certificate.

Method: a redis-server with a TLS port that requires client certificates, and heatsink in front of it with right and
wrong certificates.
"""

import os
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

import servers
import tls
from checks import GUARD_S, wait_for


class EngineTls(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.certificates = tls.Certificates()
        cls.addClassCleanup(cls.certificates.close)
        port = servers.ReservedPort()
        cls.addClassCleanup(port.release)
        cls.redis = servers.Redis("--tls-port", port.number, *cls.certificates.options())
        cls.addClassCleanup(cls.redis.close)
        cls.url = "rediss://localhost:%d" % port.number

    def flags(self, ca="ca", name="client"):
        path = self.certificates.path
        return ["--engine", self.url, "--engine-tls-ca-cert-file", path(ca + ".pem"),
                "--engine-tls-cert-file", path(name + ".pem"), "--engine-tls-key-file",
                path(name + ".key")]

    def test_the_right_certificates(self):
        with servers.Heatsink(*self.flags()) as server:
            client = server.client()
            self.assertTrue(client.set("secret", "x" * 300000))
            self.assertEqual(client.get("secret"), b"x" * 300000)
            pipeline = client.pipeline(transaction=False)
            for _ in range(2000):
                pipeline.incr("counter")
            self.assertEqual(pipeline.execute(), list(range(1, 2001)))
        self.assertEqual(self.redis.client().get("counter"), b"2000")

    def test_a_folder_of_authorities(self):
        path = self.certificates.path
        with servers.Heatsink(*self.flags(), "--engine-tls-ca-cert-file", "",
                              "--engine-tls-ca-cert-dir", path("cas")) as server:
            self.assertTrue(server.client().set("folder", "1"))

    def fails(self, *flags):
        """The error that a client gets because no server is trusted; checks that nothing was written."""
        said = []

        def is_known():
            with self.assertRaises(servers.redis.RedisError) as caught:
                client.set("planted", "1")
            said.append(str(caught.exception))
            return "is not ready yet" not in said[-1]
        with servers.Heatsink(*flags, "--engine-timeout", "300") as server:
            client = server.client()
            wait_for(self, "the first connection comes to its end", is_known)
        self.assertFalse(self.redis.client().exists("planted"))
        return said[-1]

    def test_a_server_with_an_untrusted_certificate(self):
        self.assertIn("verify failed", self.fails(*self.flags(ca="other-ca")))

    def test_a_server_of_another_name(self):
        port = self.url.rpartition(":")[2]
        self.assertIn("mismatch", self.fails(*self.flags(), "--engine", "rediss://127.1:" + port))

    def test_the_certificate_of_heatsink(self):
        """The server's TLS alert may be lost when the connection closes."""
        self.assertRegex(self.fails(*self.flags(name="stranger")), "alert unknown ca|reset|closed")

    def test_skip_verify(self):
        with servers.Heatsink(*self.flags(ca="other-ca"), "--engine-tls-skip-verify",
                              "yes") as server:
            self.assertTrue(server.client().set("trusting", "1"))
            server.wait_log("warn .*engine-tls-skip-verify")

    def test_files_that_are_not_there(self):
        done = subprocess.run(
            [servers.heatsink_path(), "serve", "--port", "0", "--http", "-1",
             *self.flags(), "--engine-tls-cert-file", "/nowhere/none.pem"],
            capture_output=True, text=True, timeout=GUARD_S, check=False)
        said = done.stdout + done.stderr
        self.assertEqual((done.returncode, len(said.splitlines())), (1, 1), said)
        self.assertIn("/nowhere/none.pem: No such file or directory", said)


if __name__ == "__main__":
    unittest.main()
