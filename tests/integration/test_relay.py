"""Goal: the relay for tests (tests/lib/relay.py) passes bytes on unchanged and injects exactly the faults that a test
asks for.

Method: a plain connection talks through the relay to a redis-server; the test reads the server's state directly, past
the relay.
"""
import unittest

from relay import Garbled, Relay, read_request, reply_end
from resp import Closed, Connection, encode
from servers import Redis, ReservedPort

RUN_ONCE = True


class Through(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.redis = Redis()
        cls.addClassCleanup(cls.redis.close)

    def setUp(self):
        self.server = self.redis.raw()
        self.server.call("FLUSHALL")
        self.relay = Relay(self.redis.port)
        self.addCleanup(self.relay.close)

    def connect(self):
        connection = Connection(self.relay.port)
        self.addCleanup(connection.close)
        return connection

    def value(self, key):
        return self.server.call("GET", key).text

    def test_bytes_pass_as_they_are(self):
        client = self.connect()
        value = bytes(range(256)) * 1000
        requests = [("SET", "a", value), ("GET", "a"), ("ECHO", b"\r\n"), ("HELLO", 3),
                    ("CONFIG", "GET", "max*"), ("NOSUCH",), ("GET", "none"), ("PING",)] * 20
        through = [reply.raw for reply in client.call_all(requests)]
        straight = [reply.raw for reply in self.redis.raw().call_all(requests)]
        for number in range(3, len(requests), 8):  # the reply to HELLO contains the connection's id
            through[number] = straight[number] = b""
        self.assertEqual(through, straight)
        self.assertEqual(self.relay.count("GET"), 40)
        self.assertEqual(self.relay.count("CONFIG GET"), 20)
        client.send(b"ECHO in")
        client.send(b"line\r\nPING\r\n")
        self.assertEqual(client.read().raw, b"$6\r\ninline\r\n")
        self.assertEqual(client.read().raw, b"+PONG\r\n")

    def test_subscribers_and_pushes_pass(self):
        for hello in ([], [("HELLO", 3)]):
            client = self.connect()
            client.call_all(hello + [("SUBSCRIBE", "news")])
            self.server.call("PUBLISH", "news", "one")
            self.assertEqual(client.read().items[2].text, b"one")
            client.send(encode("UNSUBSCRIBE"))
            self.assertEqual(client.read().items[2].number(), 0)

    def test_a_push_is_no_reply(self):
        client = self.connect()
        client.call_all([("HELLO", 3), ("CLIENT", "TRACKING", "ON"), ("GET", "a")])
        self.relay.answer(b"+two\r\n", "ECHO")
        replies = client.call_all([("SET", "a", 1), ("ECHO", "one"), ("PING",)]) + [client.read()]
        self.assertEqual(sorted(reply.kind for reply in replies), sorted(b">+++"))
        self.assertEqual([reply.raw for reply in replies if reply.kind != ord(">")],
                         [b"+OK\r\n", b"+two\r\n", b"+PONG\r\n"])

    def test_a_replica_syncs_through_it(self):
        self.server.call("CONFIG", "SET", "repl-diskless-sync-delay", 0)
        self.server.call("SET", "a", "1")
        with Redis("--replicaof", "127.0.0.1", self.relay.port) as replica:
            replica.wait_log("sync: Finished with success")
            self.assertEqual(replica.raw().call("GET", "a").raw, b"$1\r\n1\r\n")

    def test_cut_before_the_server_sees_it(self):
        client = self.connect()
        fault = self.relay.cut_before("INCR")
        client.send(encode("SET", "a", 1) + encode("INCR", "a") + encode("SET", "a", 9))
        client.read_to_end()
        fault.wait()
        self.assertIn(self.value("a"), (None, b"1"))
        self.assertEqual(self.connect().call("INCR", "b").raw, b":1\r\n", "once is once")

    def test_cut_between_request_and_reply(self):
        client = self.connect()
        self.relay.cut_after("INCR")
        client.send(encode("PING") + encode("INCR", "a") + encode("PING"))
        self.assertEqual(client.read_to_end(), b"+PONG\r\n")
        self.assertEqual(self.value("a"), b"1")

    def test_cut_within_a_reply(self):
        self.server.call("SET", "a", "0123456789")
        self.relay.cut_after("GET", reply_bytes=7)
        client = self.connect()
        client.send(encode("GET", "a"))
        self.assertEqual(client.read_to_end(), b"$10\r\n01")

    def test_a_reply_is_held_and_released(self):
        client, other = self.connect(), self.connect()
        fault = self.relay.hold("GET")
        client.send(encode("GET", "a") + encode("PING"))
        fault.wait()
        self.assertEqual(other.call("PING").raw, b"+PONG\r\n", "others go on")
        client.socket.setblocking(False)
        with self.assertRaises(BlockingIOError):
            client.socket.recv(1)
        client.socket.setblocking(True)
        fault.release()
        self.assertEqual((client.read().raw, client.read().raw), (b"$-1\r\n", b"+PONG\r\n"))

    def test_a_reply_is_late(self):
        self.relay.hold("GET", times=None, seconds=0.01)
        replies = self.connect().call_all([("GET", "a")] * 3)
        self.assertEqual([reply.raw for reply in replies], [b"$-1\r\n"] * 3)

    def test_swallowed_with_all_that_follows(self):
        client = self.connect()
        fault = self.relay.swallow(lambda args: args[1:2] == [b"b"])
        client.send(encode("SET", "a", 1) + encode("SET", "b", 1) + encode("SET", "c", 1))
        self.assertEqual(client.read().raw, b"+OK\r\n")
        fault.wait()
        client.send(encode("SET", "d", 1))
        client.close()
        self.relay.wait("the link ends", lambda relay: not relay.links)
        self.assertEqual(self.connect().call("MGET", "a", "b", "c", "d").raw,
                         b"*4\r\n$1\r\n1\r\n" + 3 * b"$-1\r\n")

    def test_garbage_instead_of_a_reply(self):
        client = self.connect()
        self.relay.answer(b"\x00nonsense\r\n", "INCR", times=2)
        client.send(encode("INCR", "a") * 3)
        wanted = b"\x00nonsense\r\n" * 2 + b":3\r\n"
        self.assertEqual(client.exactly(len(wanted)), wanted)
        self.assertEqual(self.value("a"), b"3")

    def test_a_reply_without_end(self):
        client = self.connect()
        fault = self.relay.endless("GET", head=b"*-", chunk=b"1" * 1000)
        client.send(encode("GET", "a"))
        self.assertEqual(client.exactly(100002), b"*-" + b"1" * 100000)
        client.close()
        self.relay.wait("the link ends", lambda relay: not relay.links)
        self.assertGreaterEqual(fault.sent, 100002)

    def test_pause_refuse_and_cut_all(self):
        client = self.connect()
        client.call("PING")
        self.relay.pause()
        client.send(encode("SET", "a", 1))
        self.relay.wait("the request is in the relay", lambda relay: relay.count("SET"))
        self.assertIsNone(self.value("a"))
        self.relay.resume()
        self.assertEqual(client.read().raw, b"+OK\r\n")
        self.relay.refuse()
        with self.assertRaises(ConnectionRefusedError):
            self.connect()
        self.assertEqual(client.call("PING").raw, b"+PONG\r\n")
        self.relay.listen()
        self.assertEqual(self.connect().call("PING").raw, b"+PONG\r\n")
        self.relay.cut_all()
        with self.assertRaises((Closed, ConnectionError)):
            client.call("PING")
        self.assertEqual(self.connect().call("PING").raw, b"+PONG\r\n")

    def test_a_server_that_is_gone(self):
        nobody = ReservedPort()
        self.addCleanup(nobody.release)
        self.relay.target = nobody.number
        self.assertTrue(self.connect().is_closed())

    def test_close_with_active_faults(self):
        for make in (self.relay.hold, self.relay.endless, self.relay.swallow):
            fault = make("GET")
            self.connect().send(encode("GET", "a"))
            fault.wait()
        self.relay.pause()
        self.connect().send(encode("GET", "a"))
        self.relay.close()
        self.assertEqual(self.relay.links, set())


class Boundaries(unittest.TestCase):
    def test_a_reply_ends_where_it_ends(self):
        for reply in (b"+OK\r\n", b"-ERR no\r\n", b":-12\r\n", b"$-1\r\n", b"$0\r\n\r\n",
                      b"*-1\r\n", b"$4\r\n\r\n\r\n\r\n", b"*0\r\n",
                      b"*2\r\n*1\r\n:1\r\n$1\r\na\r\n", b"_\r\n",
                      b"%1\r\n+a\r\n*1\r\n:1\r\n", b"|1\r\n+a\r\n:1\r\n$1\r\na\r\n", b",1.5\r\n",
                      b"~2\r\n#t\r\n(12345678901234567890\r\n", b"=5\r\ntxt:a\r\n", b">1\r\n+a\r\n",
                      b"!3\r\nERR\r\n"):
            for cut in range(len(reply)):
                self.assertEqual(reply_end(b"xx" + reply[:cut], 2), -1, reply[:cut])
            self.assertEqual(reply_end(b"xx" + reply + b"+", 2), 2 + len(reply))
        for bad in (b"what\r\n", b"$x\r\n", b"\r\n"):
            self.assertRaises(Garbled, reply_end, bad, 0)

    def test_a_request_ends_where_it_ends(self):
        request = encode("SET", "a", "\r\n*1\r\n")
        for cut in range(len(request)):
            self.assertEqual(read_request(request[:cut], 0)[1], -1)
        args, end = read_request(request + b"*", 0)
        self.assertEqual((args, end), ([b"SET", b"a", b"\r\n*1\r\n"], len(request)))
        self.assertEqual(read_request(b"GET  a\r\n", 0), ([b"GET", b"a"], 8))


if __name__ == "__main__":
    unittest.main()
