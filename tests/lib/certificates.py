"""Certificates for tests: a certificate authority, and a certificate that it signed for 127.0.0.1.

    paths = certificates.make(folder)       # paths.ca, paths.cert, paths.key
    context = paths.context()               # for a client that trusts that authority alone
"""
import os
import ssl
import subprocess

DAYS = "3650"
NEW_KEY = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]


class Paths:
    def __init__(self, folder):
        self.ca = os.path.join(folder, "ca.crt")
        self.ca_key = os.path.join(folder, "ca.key")
        self.cert = os.path.join(folder, "server.crt")
        self.key = os.path.join(folder, "server.key")

    def context(self):
        """A client context that trusts the authority and presents the same certificate."""
        context = ssl.create_default_context(cafile=self.ca)
        context.load_cert_chain(self.cert, self.key)
        return context


def _openssl(*args):
    done = subprocess.run(["openssl", "req", "-x509", "-days", DAYS, *NEW_KEY, *args],
                          capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise AssertionError(done.stderr)


def make(folder):
    paths = Paths(folder)
    _openssl("-subj", "/CN=tests", "-keyout", paths.ca_key, "-out", paths.ca)
    _openssl("-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost",
             "-addext", "basicConstraints=critical,CA:FALSE",
             "-CA", paths.ca, "-CAkey", paths.ca_key, "-keyout", paths.key, "-out", paths.cert)
    return paths
