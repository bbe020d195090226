"""Goal: tools/run-tests counts and names every kind of failure, shows it in the exit status, and leaves no process of a
test running.

Method: it runs in small trees with one misbehaving test program each.
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

from checks import wait_for
from servers import note

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
HEAD = "import unittest\nclass T(unittest.TestCase):\n"

RUN_ONCE = True


class Runner(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = folder.name
        for name in ("tools", "tests/unit", "tests/integration", "build/tests"):
            os.makedirs(os.path.join(self.root, name))
        shutil.copy(os.path.join(ROOT, "tools/run-tests"), os.path.join(self.root, "tools"))

    def write(self, path, text):
        path = os.path.join(self.root, path)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(path, 0o755)

    def run_tests(self, *names, timeout_s="600"):
        """Runs run-tests; returns its last line and exit status. self.output: all output."""
        done = subprocess.run(
            [sys.executable, os.path.join(self.root, "tools/run-tests"), *names], cwd=self.root,
            env={**os.environ, "TEST_TIMEOUT_S": timeout_s}, text=True, check=False,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.output = done.stdout
        return self.output.splitlines()[-1], done.returncode

    def python(self, body):
        self.write("tests/integration/test_it.py", body)

    def unit(self, script):
        self.write("tests/unit/test_it.c", "")
        self.write("build/tests/test_it", "#!/bin/sh\n" + script)

    def test_all_is_well(self):
        self.python(HEAD + " def test_a(self): pass\n def test_b(self): pass\n")
        self.write("tests/integration/test_sh.sh", "#!/bin/sh\nexit 0\n")
        self.assertEqual(self.run_tests(), ("3 passed, 0 failed", 0))

    def test_failing_method(self):
        self.python(HEAD + " def test_a(self): self.fail('because')\n def test_b(self): pass\n")
        self.assertEqual(self.run_tests(), ("1 passed, 1 failed", 1))
        self.assertIn("because", self.output)

    def test_the_first_of_many_failures_is_shown(self):
        self.python(HEAD + " def test_a(self): self.fail('the cause\\n' + 'x\\n' * 1000)\n"
                           " def test_b(self): self.fail('y\\n' * 1000 + 'the end')\n")
        self.assertEqual(self.run_tests(), ("0 passed, 2 failed", 1))
        self.assertIn("the first failure:", self.output)
        self.assertIn("the cause", self.output)
        self.assertIn("the end", self.output)
        self.assertLess(self.output.count("\n"), 200)

    def test_notes_of_passing_tests_are_shown(self):
        self.python("import sys\n" + HEAD + " def test_a(self): print('\\nnote: odd\\nodder', "
                    "file=sys.stderr)\n")
        self.assertEqual(self.run_tests(), ("1 passed, 0 failed", 0))
        self.assertIn("\nnote: odd\n", self.output)
        self.assertNotIn("odder", self.output)

    def test_failing_subtests_are_one_failure(self):
        self.python(HEAD + " def test_a(self):\n  for i in range(4):\n"
                           "   with self.subTest(i): self.fail()\n def test_b(self): pass\n")
        self.assertEqual(self.run_tests(), ("1 passed, 1 failed", 1))

    def test_failing_class_setup(self):
        self.python(HEAD + " @classmethod\n def setUpClass(cls): raise OSError\n"
                           " def test_a(self): pass\n")
        self.assertEqual(self.run_tests(), ("0 passed, 1 failed", 1))

    def test_unexpected_success(self):
        self.python(HEAD + " @unittest.expectedFailure\n def test_a(self): pass\n")
        self.assertEqual(self.run_tests(), ("0 passed, 1 failed", 1))

    def test_module_that_does_not_load(self):
        self.python("import no_such_module\n")
        self.assertEqual(self.run_tests(), ("0 passed, 1 failed", 1))

    def test_module_without_tests(self):
        self.python("import unittest\n")
        self.assertEqual(self.run_tests(), ("0 passed, 1 failed", 1))

    def test_module_that_dies_midway(self):
        self.python("import os\n" + HEAD + " def test_a(self): os._exit(0)\n")
        self.assertEqual(self.run_tests(), ("0 passed, 1 failed", 1))

    def test_module_that_hangs_is_ended_with_its_children(self):
        self.python("import os, subprocess\n" + HEAD + " def test_a(self):\n"
                    "  child = subprocess.Popen(['sleep', '100000'])\n"
                    "  open('new', 'w').write(str(child.pid))\n  os.rename('new', 'pid')\n"
                    "  child.wait()\n")
        pid = os.path.join(self.root, "pid")
        for timeout_s in (8, 16, 32, 64):
            self.assertEqual(self.run_tests(timeout_s=str(timeout_s)), ("0 passed, 1 failed", 1))
            if os.path.exists(pid):
                break
            note(f"a module did not start its child within {timeout_s} s and is given more time")
        with open(pid, encoding="ascii") as file:
            child = int(file.read())
        wait_for(self, "the child has ended", lambda: not runs(child))

    def test_unit_program(self):
        self.unit("echo '[       OK ] test_a'; echo '[       OK ] test_b'\n")
        self.assertEqual(self.run_tests(), ("2 passed, 0 failed", 0))

    def test_unit_program_with_a_failure(self):
        self.unit("echo '[       OK ] test_a'; echo '[  FAILED  ] test_b'\n"
                  "echo '[  FAILED  ] tests: 1 test(s), listed below:'\n"
                  "echo '[  FAILED  ] test_b'; exit 1\n")
        self.assertEqual(self.run_tests(), ("1 passed, 1 failed", 1))

    def test_unit_program_that_crashes(self):
        self.unit("echo '[       OK ] test_a'; kill -SEGV $$\n")
        self.assertEqual(self.run_tests(), ("1 passed, 1 failed", 1))

    def test_unit_program_that_leaks(self):
        self.unit("echo '[       OK ] test_a'; exit 99\n")
        self.assertEqual(self.run_tests(), ("1 passed, 1 failed", 1))

    def test_unit_program_that_was_not_built(self):
        self.write("tests/unit/test_it.c", "")
        self.assertEqual(self.run_tests(), ("0 passed, 1 failed", 1))

    def test_script(self):
        self.write("tests/integration/test_it.sh", "#!/bin/sh\necho because; exit 3\n")
        self.assertEqual(self.run_tests(), ("0 passed, 1 failed", 1))
        self.assertIn("because", self.output)

    def test_names(self):
        self.python(HEAD + " def test_a(self): pass\n def test_ab(self): pass\n"
                           "class U(T):\n def test_c(self): pass\n")
        self.unit("echo '[       OK ] test_a'\n")
        for name, count in (("test_ab", 2), ("T", 2), ("T.test_a", 1), ("U", 3),
                            ("test_it.U.test_c", 1), ("test_it.py", 5), ("test_it", 6)):
            with self.subTest(name):
                self.assertEqual(self.run_tests(name), (f"{count} passed, 0 failed", 0))
        self.assertEqual(self.run_tests("test_nothing")[1], 1)

    def test_the_longest_begin_first(self):
        """Programs start in order of their last times, longest first; unknown ones before all others."""
        for name in ("test_quick", "test_new", "test_slow"):
            self.write(f"tests/integration/{name}.sh", "#!/bin/sh\n")
        self.write("build/test-times.json", '{"test_quick": 1.5, "test_slow": 100000, "test_old": 3}')
        self.assertEqual(self.run_tests("--jobs", "1"), ("3 passed, 0 failed", 0))
        self.assertEqual([line.split()[1] for line in self.output.splitlines()[:-1]],
                         ["test_new", "test_slow", "test_quick"])
        with open(os.path.join(self.root, "build/test-times.json"), encoding="ascii") as file:
            times = json.load(file)
        self.assertEqual(set(times), {"test_quick", "test_new", "test_slow", "test_old"})
        self.assertLess(times["test_slow"], 100000)
        self.write("build/test-times.json", "nonsense")
        self.assertEqual(self.run_tests(), ("3 passed, 0 failed", 0))

    def test_programs_without_threads(self):
        """Programs without threads are left out of a thread sanitizer run, unless they are named."""
        makers = {"test_pthread": ("#include <pthread.h>", "pthread_create"),
                  "test_none": ("#include <stdlib.h>", "calloc")}
        for name, (include, function) in makers.items():
            self.write(f"tests/unit/{name}.c", f"#define _GNU_SOURCE\n{include}\n#include <stdio.h>\n"
                       f"void *volatile used = (void *){function};\n"
                       'int main(void) { puts("[       OK ] test_a"); return !used; }\n')
            subprocess.run(["gcc", "-o", os.path.join(self.root, "build/tests", name), "-pthread",
                            os.path.join(self.root, "tests/unit", f"{name}.c")], check=True)
        self.python(HEAD + " def test_a(self): pass\n")
        self.assertEqual(self.run_tests(), ("3 passed, 0 failed", 0))
        self.assertEqual(self.run_tests("--sanitizer", "address"), ("3 passed, 0 failed", 0))
        self.assertEqual(self.run_tests("--sanitizer", "thread"), ("2 passed, 0 failed", 0))
        self.assertNotIn("test_none", self.output)
        self.assertEqual(self.run_tests("--sanitizer", "thread", "test_none"),
                         ("1 passed, 0 failed", 0))
        os.unlink(os.path.join(self.root, "build/tests/test_none"))  # a missing program is a failure
        self.assertEqual(self.run_tests("--sanitizer", "thread"), ("2 passed, 1 failed", 1))

    def modules_run(self, *arguments):
        """The names of the programs that ran."""
        self.run_tests(*arguments)
        return sorted(line.split()[1] for line in self.output.splitlines()[:-1])

    def test_sanitizers(self):
        """Each module is in the short run or in the rest, or is marked RUN_ONCE."""
        body = HEAD + " def test_a(self): pass\n"
        for name, extra in {
                "plain": "", "once": "RUN_ONCE = True\n", "clusters": "if 0:\n from cluster import Cluster\n",
                "cluster": "import sys\nsys.modules['cluster'] = sys\nimport cluster\n",
                "chosen": "import sys\nsys.modules['cluster'] = sys\nimport cluster\n"
                          "SANITIZERS = ('address',)\n",
                "never": "SANITIZERS = ()\n"}.items():
            self.write(f"tests/integration/test_{name}.py", extra + body)
        everything = ["test_chosen", "test_cluster", "test_clusters", "test_never", "test_once",
                      "test_plain"]
        self.assertEqual(self.modules_run(), everything)
        concerned = [name for name in everything if name != "test_once"]
        for sanitizer, short in (("address", ["test_chosen", "test_clusters", "test_plain"]),
                                 ("undefined", ["test_chosen", "test_clusters", "test_plain"]),
                                 ("thread", ["test_clusters", "test_plain"])):
            with self.subTest(sanitizer):
                self.assertEqual(self.modules_run("--sanitizer", sanitizer), short)
                self.assertEqual(self.modules_run("--sanitizer", sanitizer, "--rest"),
                                 [name for name in concerned if name not in short])
                self.assertEqual(self.modules_run("--sanitizer", sanitizer, "test_once"), ["test_once"])

    def test_settings_that_make_no_sense(self):
        for line in ("SANITIZERS = ('adress',)", "SANITIZERS = 'address'", "SANITIZERS = (", "RUN_ONCE = 3"):
            with self.subTest(line):
                self.python(HEAD + " def test_a(self): pass\n" + line + "\n")
                last, code = self.run_tests()
                self.assertEqual(code, 1)
                self.assertIn(line, last)
                self.assertIn("test_it.py", last)

    def test_programs_at_a_time(self):
        """At least two programs run at a time, however busy the machine is."""
        for name in "ab":
            self.write(f"tests/integration/test_{name}.sh", f"#!/bin/sh\n: > {name}.runs\n"
                       "while [ $(ls *.runs | wc -l) -lt 2 ]; do sleep 0.05; done\n")
        self.assertEqual(self.run_tests(), ("2 passed, 0 failed", 0))


def runs(pid):
    """True if the process exists and is no zombie."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


if __name__ == "__main__":
    unittest.main()
