"""Base classes of integration tests: one heatsink for all tests of a class, or an empty folder for each test."""

import os
import shutil
import tempfile
import unittest

import resp
import servers


class ServerCase(unittest.TestCase):
    """One server for all tests of a class; `args` are its options. It ends with the class."""

    args = ("--sync", "off")

    @classmethod
    def setUpClass(cls):
        cls.server = servers.Heatsink(*cls.args)
        cls.addClassCleanup(cls.server.close)

    def connect(self):
        connection = resp.Connection(self.server.port)
        self.addCleanup(connection.close)
        return connection

    def assert_reply(self, connection, raw, *args):
        self.assertEqual(connection.call(*args).raw, raw)

    def assert_usable(self, connection):
        self.assertEqual(connection.call("ECHO", "usable").raw, b"$6\r\nusable\r\n")


class FolderCase(unittest.TestCase):
    """An empty folder for each test, removed after it."""

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="heatsink-case-")
        self.addCleanup(shutil.rmtree, self.folder)

    def path(self, name):
        return os.path.join(self.folder, name)
