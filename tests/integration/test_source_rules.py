"""Goal: the source keeps its architecture rules: includes only go down the layers; code below the I/O line knows no
clock, socket, thread, file or random source; there is no mutable global state; files stay short; unit tests mirror src.

Method: each rule (tests/lib/source_rules.py) is applied to the real tree, and to a small tree with one planted
mistake, which shows that the rule can fail.
"""
import os
import re
import subprocess
import tempfile
import unittest

import source_rules

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("HEATSINK_BUILD") or os.path.join(ROOT, "build")

RUN_ONCE = True


class SourceRules(unittest.TestCase):
    def assertNoViolations(self, violations):
        if violations:
            self.fail("\n" + "\n".join(violations))

    def test_includes_only_go_down(self):
        self.assertNoViolations(source_rules.include_violations(ROOT))

    def test_stages_do_not_know_each_other(self):
        self.assertNoViolations(source_rules.stage_violations(ROOT))

    def test_nothing_below_the_io_line_does_io(self):
        self.assertNoViolations(source_rules.purity_violations(ROOT, BUILD))

    def test_simulated_code_does_no_io(self):
        self.assertNoViolations(source_rules.sans_io_violations(ROOT, BUILD))

    # Instrumented objects contain the sanitizer's globals, so only the plain build is checked.
    if not re.search("address|undefined|thread|fuzz", os.path.basename(BUILD)):
        def test_no_global_state(self):
            self.assertNoViolations(source_rules.global_violations(ROOT, BUILD))

    def test_files_are_short(self):
        self.assertNoViolations(source_rules.length_violations(ROOT))

    def test_nothing_is_left_open(self):
        self.assertNoViolations(source_rules.unfinished_violations(ROOT))

    def test_unit_tests_mirror_the_source(self):
        self.assertNoViolations(source_rules.mirror_violations(ROOT))


class PlantedMistakes(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = folder.name

    def write(self, path, text):
        path = os.path.join(self.root, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    def compile(self, path, text):
        """Writes a source and compiles it to the place of its object in the build."""
        self.write(path, text)
        obj = os.path.join(self.root, "build/obj", path[:-2] + ".o")
        os.makedirs(os.path.dirname(obj), exist_ok=True)
        subprocess.run(["gcc", "-w", "-O2", "-D_GNU_SOURCE", "-c", "-o", obj,
                        os.path.join(self.root, path)], check=True)

    def assertComplains(self, violations, about):
        self.assertEqual(len(violations), 1, violations)
        self.assertRegex(violations[0], about)

    def test_include_that_goes_up(self):
        self.write("src/wire/reply.c", '#include "base/buf.h"\n#include "core/core.h"\n')
        self.assertComplains(source_rules.include_violations(self.root), "wire must not know core")

    def test_include_that_goes_sideways(self):
        self.write("src/absorb/fold.c", '#include "spread/counter.h"\n')
        self.assertComplains(source_rules.include_violations(self.root), "absorb must not know spread")

    def test_core_that_knows_a_stage(self):
        self.write("src/core/dispatch.c", '#include "absorb/cache/stage.h"\n')
        self.assertComplains(source_rules.include_violations(self.root), "core must not know absorb")

    def test_stage_that_knows_another(self):
        self.write("src/absorb/cache/read.c", '#include "absorb/entry.h"\n#include "absorb/fold/fold.h"\n')
        self.write("src/absorb/fold/fold.c", '#include "absorb/fold/fold.h"\n#include "core/stage.h"\n')
        self.assertEqual(source_rules.include_violations(self.root), [])
        self.assertComplains(source_rules.stage_violations(self.root), "stages do not include each other")

    def test_ground_that_knows_a_stage(self):
        self.write("src/absorb/entry.c", '#include "absorb/cache/store.h"\n')
        self.assertComplains(source_rules.stage_violations(self.root), "stages do not include each other")

    def test_include_of_the_simulated_world(self):
        self.write("src/core/core.c", '  #  include "sim/world.h"\n')
        self.assertComplains(source_rules.include_violations(self.root), "core must not know sim")

    def test_include_around_the_corner(self):
        self.write("src/wire/reply.c", '#include "../core/core.h"\n')
        self.assertComplains(source_rules.include_violations(self.root), "not written from src/")

    def test_folder_without_a_floor(self):
        self.write("src/attic/box.c", "")
        self.assertComplains(source_rules.include_violations(self.root), "no floor")

    def test_good_includes(self):
        self.write("src/cli/main.c", '#include "serve/serve.h"\n#include "base/buf.h"\n')
        self.write("src/serve/serve.c", '#include "serve/serve.h"\n#include "engine/engine.h"\n')
        self.write("sim/world.c", '#include "sim/world.h"\n#include "core/core.h"\n')
        self.assertEqual(source_rules.include_violations(self.root), [])

    def test_every_kind_of_impurity(self):
        impure = {
            "clock": "#include <time.h>\nint f(void) { struct timespec t; return "
                     "clock_gettime(CLOCK_MONOTONIC, &t); }",
            "socket": "#include <sys/socket.h>\nint f(void) { return socket(1, 1, 0); }",
            "thread": "#include <pthread.h>\nint f(pthread_mutex_t *m) "
                      "{ return pthread_mutex_lock(m); }",
            "file": "#include <fcntl.h>\nint f(void) { return open(\"/tmp/x\", 0); }",
            "output": "#include <stdio.h>\nint f(void) { return printf(\"%d\", 1); }",
            "random": "#include <stdlib.h>\nint f(void) { return rand(); }",
            "getrandom": "#include <sys/random.h>\nlong f(void *p) { return getrandom(p, 1, 0); }",
            "library": "int uv_run(void *, int);\nint f(void) { return uv_run(0, 0); }",
            "environment": "#include <stdlib.h>\nchar *f(void) { return getenv(\"HOME\"); }",
            "abort": "#include <stdlib.h>\nvoid f(void) { abort(); }",
        }
        for kind, code in impure.items():
            with self.subTest(kind):
                self.compile("src/core/core.c", code)
                self.assertComplains(
                    source_rules.purity_violations(self.root, os.path.join(self.root, "build")), "asks for")

    def test_clock_in_simulated_code(self):
        build = os.path.join(self.root, "build")
        code = "unsigned long uv_hrtime(void);\nunsigned long f(void) { return uv_hrtime(); }"
        self.compile("src/engine/redis/monitor_thread.c", code)
        self.assertEqual(source_rules.sans_io_violations(self.root, build), [])
        self.compile("src/engine/redis/monitor_poll.c", code)
        self.assertComplains(source_rules.sans_io_violations(self.root, build), "monitor_poll.c.*uv_hrtime")

    def test_last_words_are_for_two_files_only(self):
        build = os.path.join(self.root, "build")
        code = '#include <stdio.h>\n#include <stdlib.h>\n' \
               'void f(int x) { fprintf(stderr, "%d", x); abort(); }'
        self.compile("src/base/check.c", code)
        self.assertEqual(source_rules.purity_violations(self.root, build), [])
        self.compile("src/base/buf.c", code)
        self.assertComplains(source_rules.purity_violations(self.root, build), "base/buf.c")

    def test_code_that_was_not_compiled(self):
        self.compile("src/base/buf.c", "int f(int a) { return a + 1; }")
        self.write("src/wire/reply.c", "")
        self.assertComplains(
            source_rules.purity_violations(self.root, os.path.join(self.root, "build")), "missing")

    def test_nothing_to_look_at(self):
        self.assertComplains(
            source_rules.purity_violations(self.root, os.path.join(self.root, "build")), "no object")

    def test_global_state(self):
        self.compile("src/serve/serve.c", """
            static int calls;
            const char *const names[] = {"a", "b"};
            static const struct { int (*f)(int); } table[] = {{0}};
            int f(int a) { return ++calls + a + (table[a].f != 0) + names[a][0]; }""")
        self.assertComplains(
            source_rules.global_violations(self.root, os.path.join(self.root, "build")), "calls is a global")

    def test_state_hidden_in_a_function(self):
        self.compile("src/serve/serve.c", "int f(void) { static int calls = 7; return ++calls; }")
        self.assertComplains(
            source_rules.global_violations(self.root, os.path.join(self.root, "build")), "calls")

    def test_long_file(self):
        self.write("src/core/core.c", "\n" * source_rules.LINES_MAX)
        self.assertEqual(source_rules.length_violations(self.root), [])
        self.write("src/core/core.c", "\n" * (source_rules.LINES_MAX + 1))
        self.assertComplains(source_rules.length_violations(self.root), "1001 lines")

    def test_long_header_of_the_core(self):
        self.write("src/serve/server.h", "\n" * (source_rules.CORE_HEADER_LINES_MAX + 1))
        self.write("src/core/core.h", "\n" * source_rules.CORE_HEADER_LINES_MAX)
        self.assertEqual(source_rules.length_violations(self.root), [])
        self.write("src/core/core.h", "\n" * (source_rules.CORE_HEADER_LINES_MAX + 1))
        self.assertComplains(source_rules.length_violations(self.root), "301 lines")

    def test_unfinished_work(self):
        self.write("src/core/core.c", "int a; /* TO" "DO: free it */\n")
        self.assertComplains(source_rules.unfinished_violations(self.root), "core.c:1")

    def test_unit_test_of_nothing(self):
        self.write("src/base/buf.c", "")
        self.write("tests/unit/test_buf.c", "")
        self.write("tests/unit/test_base_buf_growth.c", "")
        self.assertEqual(source_rules.mirror_violations(self.root), [])
        self.write("tests/unit/test_bufs.c", "")
        self.assertComplains(source_rules.mirror_violations(self.root), "no module called bufs")

    def test_folder_without_a_unit_test(self):
        self.write("src/base/buf.c", "")
        self.write("src/wire/reply.c", "")
        self.write("tests/unit/test_wire_reply.c", "")
        self.assertComplains(source_rules.mirror_violations(self.root), "src/base")


if __name__ == "__main__":
    unittest.main()
