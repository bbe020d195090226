"""TLS for tests: freshly made certificates, servers with a TLS port, and a client that controls every byte."""

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
    """A folder of certificates; the head of make-certificates lists them."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="heatsink-tls-")
        subprocess.run([MAKE, self.folder], check=True)

    def path(self, name):
        return os.path.join(self.folder, name)

    def close(self):
        shutil.rmtree(self.folder)

    def copy(self, source, target):
        """Replaces a file by another one, as a renewal does."""
        shutil.copy(self.path(source), self.path(target))

    def options(self, name="server", auth="yes"):
        """The server options that name these certificates."""
        return ["--tls-cert-file", self.path(name + ".pem"), "--tls-key-file",
                self.path(name + ".key"), "--tls-ca-cert-file", self.path("ca.pem"),
                "--tls-auth-clients", auth]

    def context(self, name="client", version=None):
        """A client context that trusts the authority and presents the certificate `name`; None: no certificate."""
        context = ssl.create_default_context(cafile=self.path("ca.pem"))
        if name:
            context.load_cert_chain(self.path(name + ".pem"), self.path(name + ".key"))
        if version:
            context.minimum_version = context.maximum_version = version
        return context

    def redis_py(self, name="client"):
        """The same settings as arguments for server.client()."""
        return {"ssl": True, "ssl_ca_certs": self.path("ca.pem"),
                "ssl_certfile": self.path(name + ".pem"), "ssl_keyfile": self.path(name + ".key")}


@contextlib.contextmanager
def server(certificates, *args, plain=True, auth="yes", data=None):
    """A heatsink with a TLS port, and a plain port if `plain`."""
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
    """RESP over TLS. `socket` is the plain socket below, so that a test can send invalid TLS, hold bytes back or close
    one direction. `clean`: the server sent close_notify. With handshake=False nothing is sent before handshake()."""

    def __init__(self, port, context, handshake=True, guard_s=resp.GUARD_S):
        super().__init__(port, guard_s)
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        context.options &= ~ssl.OP_IGNORE_UNEXPECTED_EOF  # an end without close_notify is an error
        self.ssl = context.wrap_bio(self.incoming, self.outgoing, server_hostname="localhost")
        self.clean = False
        if handshake:
            try:
                self.handshake()
            except BaseException:
                self.close()
                raise

    def flush(self, piece=None):
        """Sends pending TLS bytes, in pieces of this size."""
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
        """Sends close_notify, which closes this direction."""
        with contextlib.suppress(ssl.SSLWantReadError):
            self.ssl.unwrap()
        self.flush()

    def _read_some(self):
        """Decrypted bytes; empty at the end of the connection."""
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
