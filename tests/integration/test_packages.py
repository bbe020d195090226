"""Goal: tools/install-packages installs missing packages, prints what it does, and changes nothing else.

Method: the script runs in a copy of the tree with a PATH of its own. It has the plain tools that the script uses, and
replacements for apt-get, dpkg-query, sudo and id that record their calls. So the test can play any machine: all
packages present, none present, no apt, no root, no network.
"""
import os
import re
import shutil
import subprocess
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TOOLS = "bash sh env awk sort comm dirname basename mkdir mktemp touch rm cp ln".split()
SERVICES = {"redis-server": "redis-server",  # packages that start a service, and their program
            "prometheus-redis-exporter": "prometheus-redis-exporter", "prometheus": "promtool",
            "nutcracker": "nutcracker"}

APT = """#!/bin/sh
echo "apt-get $*" >> "$CALLS"
case "$1" in
install) [ ! -e "$BROKEN" ] && touch "$INSTALLED" ;;
update) [ ! -e "$OFFLINE" ] && rm -f "$BROKEN" ;;
download) for name; do :; done; touch "$name.deb" ;;
esac
"""
DPKG_QUERY = """#!/bin/sh
[ -e "$INSTALLED" ] || exit 1
shift 3
for name; do echo "installed $name"; done
"""
DPKG_DEB = """#!/bin/sh
name=$(basename "$2" .deb)
bin=usr/bin
[ "$name" = nutcracker ] && bin=usr/sbin
mkdir -p "$3/$bin" && echo program > "$3/$bin/$name" && echo program > "$3/$bin/promtool"
"""

RUN_ONCE = True


class Packages(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = folder.name
        self.bin = os.path.join(self.root, "bin")
        os.makedirs(self.bin)
        os.makedirs(os.path.join(self.root, "tools"))
        for name in ("install-packages", "packages"):
            shutil.copy(os.path.join(ROOT, "tools", name), os.path.join(self.root, "tools"))
        for name in TOOLS:
            os.symlink(shutil.which(name), os.path.join(self.bin, name))
        self.program("dpkg-deb", DPKG_DEB)
        self.program("apt-get", APT)
        self.program("dpkg-query", DPKG_QUERY)
        self.program("id", "#!/bin/sh\necho 0\n")
        self.program("pkg-config", "#!/bin/sh\nexit 1\n")

    def program(self, name, text):
        path = os.path.join(self.bin, name)
        with open(path, "w", encoding="ascii") as file:
            file.write(text)
        os.chmod(path, 0o755)

    def path(self, name):
        return os.path.join(self.root, name)

    def mark(self, name):
        with open(self.path(name), "w", encoding="ascii"):
            pass

    def install(self, *groups):
        """Runs the script; returns its exit status. self.said: its output; self.calls: recorded calls."""
        env = {"PATH": self.bin, "CALLS": self.path("calls"), "INSTALLED": self.path("installed"),
               "BROKEN": self.path("broken"), "OFFLINE": self.path("offline")}
        done = subprocess.run([self.path("tools/install-packages"), *groups], env=env, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        self.said, self.calls = done.stdout, []
        if os.path.exists(self.path("calls")):
            with open(self.path("calls"), encoding="ascii") as file:
                self.calls = file.read().splitlines()
        return done.returncode

    def test_everything_is_there(self):
        self.mark("installed")
        self.assertEqual(self.install("run"), 0)
        self.assertEqual((self.said, self.calls), ("", []))

    def test_nothing_is_there(self):
        self.assertEqual(self.install("run"), 0)
        self.assertRegex(self.said, "installing Debian packages: .*liblmdb-dev")
        self.assertEqual(len(self.calls), 1, self.calls)
        self.assertIn("--no-install-recommends --no-remove", self.calls[0])
        self.assertIn("libuv1-dev", self.calls[0])
        self.assertNotIn("cmocka", self.calls[0], "tests' packages are for tests")

    def test_services_are_unpacked_and_never_installed(self):
        self.assertEqual(self.install("run", "test", "bench"), 0)
        for package in SERVICES:
            self.assertNotRegex("\n".join(self.calls), rf"install .*\b{package}(?![\w-])")
        self.assertEqual(set(os.listdir(self.path("build/tools/bin"))), set(SERVICES.values()))
        self.assertEqual(os.listdir(self.path("build/tools")), ["bin"], "nothing is left over")
        os.remove(self.path("calls"))
        self.assertEqual(self.install("run", "test", "bench"), 0)
        self.assertEqual((self.said, self.calls), ("", []), "the second time is quiet")

    def test_redis_server_is_a_link_into_redis_tools(self):
        self.mark("installed")
        self.program("redis-check-rdb", "#!/bin/sh\n")
        self.assertEqual(self.install("bench"), 0)
        self.assertEqual(os.readlink(self.path("build/tools/bin/redis-server")),
                         os.path.join(self.bin, "redis-check-rdb"))
        self.assertNotIn("redis-server", "\n".join(self.calls))

    def test_old_package_lists_are_read_anew_once(self):
        self.mark("broken")
        self.assertEqual(self.install("run"), 0)
        self.assertEqual([call.split()[1] for call in self.calls], ["install", "update", "install"])

    def test_no_network_and_no_libraries(self):
        self.mark("broken")
        self.mark("offline")
        self.assertEqual(self.install("run"), 1)
        self.assertRegex(self.said, r"needed and were not found:(.|\n)*lmdb \(Debian package liblmdb-dev")

    def test_no_network_and_libraries_from_elsewhere(self):
        self.mark("broken")
        self.mark("offline")
        self.program("pkg-config", "#!/bin/sh\nexit 0\n")
        self.program("gcc", "#!/bin/sh\n")
        self.assertEqual(self.install("run"), 0)

    def test_no_apt_and_no_libraries(self):
        os.remove(os.path.join(self.bin, "apt-get"))
        self.assertEqual(self.install("run"), 1)
        for library in ("libuv", "lmdb", "jansson", "libxxhash"):
            self.assertRegex(self.said, rf"{library} \(Debian package")

    def test_no_apt_and_libraries_from_elsewhere(self):
        os.remove(os.path.join(self.bin, "apt-get"))
        self.program("pkg-config", "#!/bin/sh\nexit 0\n")
        self.program("gcc", "#!/bin/sh\n")
        self.assertEqual(self.install("run"), 0)
        self.assertEqual(self.said, "")

    def test_neither_root_nor_sudo(self):
        self.program("id", "#!/bin/sh\necho 1000\n")
        self.assertEqual(self.install("run"), 1)
        self.assertRegex(self.said, "as root, run: apt-get install .*libuv1-dev")
        self.assertEqual(self.calls, [])

    def test_sudo(self):
        self.program("id", "#!/bin/sh\necho 1000\n")
        self.program("sudo", '#!/bin/sh\necho sudo >> "$CALLS"\nexec "$@"\n')
        self.assertEqual(self.install("run"), 0)
        self.assertEqual([call.split()[0] for call in self.calls], ["sudo", "apt-get"])


class List(unittest.TestCase):
    def test_every_linked_library_has_a_package(self):
        with open(os.path.join(ROOT, "Makefile"), encoding="utf-8") as file:
            wanted = re.findall(r"^(?:LIBRARIES|HEADERS) := (.*)$", file.read(), re.M)
        with open(os.path.join(ROOT, "tools/packages"), encoding="utf-8") as file:
            listed = re.findall(r"^run\s.*\blibrary (\S+)$", file.read(), re.M)
        self.assertEqual(sorted(" ".join(wanted).split()), sorted(listed))


if __name__ == "__main__":
    unittest.main()
