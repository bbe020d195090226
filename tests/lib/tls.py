"""TLS for tests: certificates made anew, servers with a TLS port, and a client whose every byte is in
the test's hand.
"""

import contextlib
import os
import shutil
import ssl
import subprocess
import tempfile

import resp
import servers

MAKE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "make-certificates")


class Certificates:
    """A folder of certificates; make-certificates says which."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="heatsink-tls-")
        subprocess.run([MAKE, self.folder], check=True)

    def path(self, name):
        return os.path.join(self.folder, name)

    def close(self):
        shutil.rmtree(self.folder)

    def copy(self, source, target):
        """As if somebody had renewed it: the same name, other bytes."""
        shutil.copy(self.path(source), self.path(target))

    def options(self, name="server", auth="yes"):
        """What a server is told of them."""
        return ["--tls-cert-file", self.path(name + ".pem"), "--tls-key-file",
                self.path(name + ".key"), "--tls-ca-cert-file", self.path("ca.pem"),
                "--tls-auth-clients", auth]

    def context(self, name="client", version=None):
        """A client's view: who it is, and that it believes our authority. name=None: nobody."""
        context = ssl.create_default_context(cafile=self.path("ca.pem"))
        if name:
            context.load_cert_chain(self.path(name + ".pem"), self.path(name + ".key"))
        if version:
            context.minimum_version = context.maximum_version = version
        return context

    def redis_py(self, name="client"):
        """The same as arguments for server.client()."""
        return {"ssl": True, "ssl_ca_certs": self.path("ca.pem"),
                "ssl_certfile": self.path(name + ".pem"), "ssl_keyfile": self.path(name + ".key")}


@contextlib.contextmanager
def server(certificates, *args, plain=True, auth="yes", data=None):
    """A heatsink with a TLS port, and a plain one beside it unless told otherwise."""
    ports = [servers.ReservedPort(), servers.ReservedPort()]
    try:
        with servers.Heatsink("--port", ports[0].number if plain else 0,
                              "--tls-port", ports[1].number, *certificates.options(auth=auth),
                              *args, data=data) as running:
            yield running
    finally:
        for port in ports:
            port.release()


class Connection(resp.Connection):
    """RESP over TLS. `socket` is the plain one below, so that a test can send what TLS never would,
    hold bytes back or close one direction; `clean` tells whether the server said goodbye. With
    handshake=False nothing is said before handshake() is called."""

    def __init__(self, port, context, handshake=True, guard_s=resp.GUARD_S):
        super().__init__(port, guard_s)
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        context.options &= ~ssl.OP_IGNORE_UNEXPECTED_EOF  # an end without a goodbye is seen
        self.ssl = context.wrap_bio(self.incoming, self.outgoing, server_hostname="localhost")
        self.clean = False
        if handshake:
            try:
                self.handshake()
            except BaseException:
                self.close()
                raise

    def flush(self, piece=None):
        """Sends what TLS has to send, in pieces of that size."""
        data = self.outgoing.read()
        for at in range(0, len(data), piece or max(1, len(data))):
            self.socket.sendall(data[at:at + (piece or len(data))])

    def _receive(self):
        data = self.socket.recv(1 << 16)
        if data:
            self.incoming.write(data)
        else:
            self.incoming.write_eof()

    def handshake(self, piece=None):
        while True:
            try:
                self.ssl.do_handshake()
                self.flush(piece)
                return
            except ssl.SSLWantReadError:
                self.flush(piece)
                self._receive()
            except ssl.SSLError:
                self.flush(piece)
                raise

    def send(self, data):
        self.ssl.write(data)
        self.flush()

    def send_slowly(self, data, piece=1):
        self.ssl.write(data)
        self.flush(piece)

    def goodbye(self):
        """TLS's own half-close."""
        with contextlib.suppress(ssl.SSLWantReadError):
            self.ssl.unwrap()
        self.flush()

    def _read_some(self):
        """Plain bytes; empty at the end."""
        while True:
            try:
                data = self.ssl.read(1 << 16)
                self.flush()
                self.clean = self.clean or not data
                return data
            except ssl.SSLWantReadError:
                self.flush()
                self._receive()
            except ssl.SSLZeroReturnError:
                self.clean = True
                return b""
            except ssl.SSLEOFError:
                return b""

    def _fill(self):
        data = self._read_some()
        if not data:
            raise resp.Closed("connection closed, left over: %r" % self.buffer[self.at:])
        self.buffer = self.buffer[self.at:] + data
        self.at = 0

    def read_to_end(self):
        data = self.buffer[self.at:]
        self.buffer, self.at = b"", 0
        while True:
            try:
                more = self._read_some()
            except ConnectionResetError:
                return data
            if not more:
                return data
            data += more

    def is_closed(self):
        try:
            return self._read_some() == b""
        except (ConnectionResetError, ssl.SSLError):
            return True

    def server_name(self):
        """The common name in the server's certificate."""
        return next(value for part in self.ssl.getpeercert()["subject"] for key, value in part
                    if key == "commonName")
