"""heatsink sim check: schedules pass, a planted mistake is found and told with its seed, the seed
brings it back, and wrong words are refused. What the checkers can see is tested in
tests/unit/test_sim.c; here it is the command that people type.
"""
import re
import subprocess
import unittest

from servers import GUARD_S, heatsink_path


def sim(*args):
    done = subprocess.run([heatsink_path(), "sim", *map(str, args)], capture_output=True,
                          text=True, timeout=GUARD_S)
    return done.returncode, done.stdout, done.stderr


class SimTest(unittest.TestCase):
    def test_schedules_pass(self):
        code, out, _ = sim("check", "--seed", 1000, "--schedules", 300)
        self.assertEqual(code, 0)
        self.assertRegex(out, r"^every law held: 300 schedules from seed 1000, \d+ requests, "
                              r"0 undecided, [\d.]+ s, \d+ schedules/s\n$")

    def test_a_mistake_is_found_and_its_seed_brings_it_back(self):
        code, out, _ = sim("check", "--mistake", "run-twice", "--schedules", 1000)
        self.assertEqual(code, 1)
        self.assertIn("a law was broken", out)
        seed = re.match(r"seed (\d+), ", out).group(1)
        code, again, _ = sim("check", "--mistake", "run-twice", "--schedules", 1, "--seed", seed)
        self.assertEqual(code, 1)
        told = out[:out.index("a law was broken")]
        self.assertIn("client 0", told)
        self.assertTrue(again.startswith(told))

    def test_heat_that_is_counted_wrongly_is_found(self):
        for mistake in ("count-twice", "count-never"):
            with self.subTest(mistake=mistake):
                code, out, _ = sim("check", "--mistake", mistake, "--schedules", 1000)
                self.assertEqual(code, 1)
                self.assertRegex(out, r"(?m)^heat: partition \d+ counted \d+ (reads|writes), ")

    def test_old_values_that_clients_keep_are_found(self):
        for mistake in ("news-lost", "news-too-early", "read-remembered-late", "news-overtake"):
            with self.subTest(mistake=mistake):
                code, out, _ = sim("check", "--mistake", mistake, "--schedules", 1000)
                self.assertEqual(code, 1)
                self.assertRegex(out, r"(?m)^caches: client \d+ .* keeps -?\d+ for key\d+, which is ")

    def test_wrong_words(self):
        for words in ((), ("nope",), ("check", "--seed"), ("check", "--seed", "x"),
                      ("check", "--nope", "1"), ("check", "--mistake", "nope")):
            with self.subTest(words=words):
                code, out, err = sim(*words)
                self.assertEqual(code, 2)
                self.assertEqual(out, "")
                self.assertTrue(err)
        code, out, _ = sim("--help")
        self.assertEqual(code, 0)
        self.assertIn("--schedules", out)
        self.assertIn(" run-twice ", out)
        self.assertIn(" count-twice ", out)


if __name__ == "__main__":
    unittest.main()
