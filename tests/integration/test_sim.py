"""Goal: `heatsink sim check` works as a command: schedules pass, in one process or several; a planted mistake is found
and reported with its seed and a short history; the seed repeats it; a run without end stops on a signal; wrong
arguments are refused.

Method: the binary is run as a user runs it. tests/unit/test_sim.c tests what the checkers find.
"""
import re
import signal
import subprocess
import unittest

from servers import GUARD_S, heatsink_path

SANITIZERS = ()  # tests/unit/test_sim.c and test_sim_stale.c run the same code

SUMMARY = (r"(?m)^every law held: (\d+) schedules, seeds (\d+) to (\d+), \d+ requests, \d+ folded, "
           r"\d+ cached, 0 undecided, [\d.]+ s, \d+ schedules/s$")


def sim(*args):
    done = subprocess.run([heatsink_path(), "sim", *map(str, args)], capture_output=True,
                          text=True, timeout=10 * GUARD_S)  # many schedules may pass before a mistake shows
    return done.returncode, done.stdout, done.stderr


class SimTest(unittest.TestCase):
    def test_schedules_pass(self):
        for jobs in (1, 3):
            with self.subTest(jobs=jobs):
                code, out, _ = sim("check", "--seed", 1000, "--schedules", 301, "--jobs", jobs)
                self.assertEqual(code, 0)
                self.assertRegex(out, SUMMARY)
                self.assertEqual(re.search(SUMMARY, out).groups(), ("301", "1000", "1300"))

    def test_a_run_without_end_stops_on_a_signal(self):
        process = subprocess.Popen([heatsink_path(), "sim", "check", "--schedules", "0", "--jobs", "2",
                                    "--seed", "500"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   text=True)
        try:
            # It starts children after it has installed its signal handlers, so now a signal can be sent.
            children = f"/proc/{process.pid}/task/{process.pid}/children"
            while True:
                self.assertIsNone(process.poll())
                with open(children, encoding="ascii") as file:
                    if len(file.read().split()) == 2:
                        break
            process.send_signal(signal.SIGINT)
            out, _ = process.communicate(timeout=GUARD_S)
        finally:
            process.kill()
            process.wait()
        self.assertEqual(process.returncode, 0)
        self.assertRegex(out, SUMMARY)
        done, first, last = map(int, re.search(SUMMARY, out).groups())
        self.assertEqual(first, 500)
        self.assertEqual(last - first + 1, max(done, 1))

    def test_a_mistake_is_found_and_its_seed_brings_it_back(self):
        code, out, _ = sim("check", "--bug", "run-twice", "--schedules", 1000)
        self.assertEqual(code, 1)
        self.assertIn("a law was broken", out)
        seed = re.match(r"seed (\d+) breaks a law\n", out).group(1)
        code, again, _ = sim("check", "--bug", "run-twice", "--schedules", 1, "--seed", seed)
        self.assertEqual(code, 1)
        told = out[:out.index("a law was broken")]
        self.assertRegex(told, r"(?m)^law \d: ")
        history = re.findall(r"(?m)^client \d+ .*$", told)
        self.assertTrue(0 < len(history) <= 12, told)
        self.assertTrue(again.startswith(told))

    def test_a_schedule_that_ends_its_process_is_shown(self):
        for about, asks in (("strict", r"(GET|SET|INCR|DEL)"), ("clients", "TRACKING")):
            with self.subTest(about=about):
                words = ("check", "--bug", "assertion-fails", "--focus", about)
                code, out, err = sim(*words, "--schedules", 100)
                self.assertEqual(code, 1)
                self.assertRegex(err, r"(?m)^seed \d+: its process ended, status 6$")
                seed = re.match(r"seed (\d+) breaks a law\nthe smallest of its kind ", out).group(1)
                told = out[:out.index("a law was broken")]
                self.assertRegex(told, rf"(?m)^ +\d+ at \d+ us: client \d sends .*{asks}")
                self.assertRegex(told, r"(?m)^heatsink: impossible state at sim/op_bugs.c:\d+: !dies$")
                self.assertRegex(told, rf"(?m)^seed {seed}, \d workers, .* clients")
                self.assertRegex(told, r"(?m)^lives: signal 6 \(Aborted\) ended the process$")
                code, again, _ = sim(*words, "--schedules", 1, "--seed", seed)
                self.assertEqual(code, 1)
                self.assertTrue(again.startswith(told))

    def test_mistakes_among_clients_that_track_keys_are_found(self):
        for mistake in ("exec-resent", "refused-but-run", "drop-order"):
            with self.subTest(mistake=mistake):
                code, out, _ = sim("check", "--focus", "clients", "--bug", mistake,
                                   "--schedules", 500)
                self.assertEqual(code, 1)
                self.assertRegex(out, r"(?m)^law [24]: ")
                self.assertRegex(out, r"(?m)^ +\d+ at \d+ us: client \d sends .*TRACKING")

    def test_mistakes_about_hot_keys_are_found(self):
        for mistake in ("joins-read-in-flight", "two-queues", "resend-lost", "drop-order", "overtake",
                        "missing-as-zero", "refused-but-run", "waiters-unlimited"):
            with self.subTest(mistake=mistake):
                code, out, _ = sim("check", "--bug", mistake, "--schedules", 1000)
                self.assertEqual(code, 1)
                self.assertRegex(out, r"(?m)^law [1246]: ")

    def test_the_script_shows_commands_that_servers_did_not_run(self):
        code, out, _ = sim("check", "--bug", "redirect-overtakes", "--schedules", 2000)
        self.assertEqual(code, 1)
        self.assertRegex(out, r"(?m)^ +\d+ at \d+ us: node \d refuses \w+ key\d+.* on \d+: (ASK|MOVED) \d+ ")

    def test_waiting_clients_and_subscribers(self):
        for mistake, law in (("element-twice", "law 4: companion"), ("message-lost", "messages: companion"),
                             ("unblock-ignored", "law 1: ")):
            with self.subTest(mistake=mistake):
                code, out, _ = sim("check", "--bug", mistake, "--schedules", 1000)
                self.assertEqual(code, 1)
                self.assertRegex(out, rf"(?m)^{law}")

    def test_heat_that_is_counted_wrongly_is_found(self):
        for mistake in ("count-twice", "count-never"):
            with self.subTest(mistake=mistake):
                code, out, _ = sim("check", "--bug", mistake, "--schedules", 1000)
                self.assertEqual(code, 1)
                self.assertRegex(out, r"(?m)^heat: partition \d+.* counted \d+ (reads|writes), ")

    def test_stale_client_caches_are_found(self):
        for mistake in ("invalidation-lost", "invalidation-too-early", "read-tracked-late", "event-overtakes"):
            with self.subTest(mistake=mistake):
                code, out, _ = sim("check", "--bug", mistake, "--schedules", 1000)
                self.assertEqual(code, 1)
                self.assertRegex(out, r"(?m)^client-caches: client \d+ .* keeps \S+ for key\d+, which is ")

    def test_old_answers_are_found(self):
        for mistake in ("push-lost", "dead-session", "own-write-unseen", "switch-ignored"):
            with self.subTest(mistake=mistake):
                code, out, _ = sim("check", "--bug", mistake, "--schedules", 1000)
                self.assertEqual(code, 1)
                self.assertRegex(out, r"(?m)^law [37]: client \d+ read key\d+ at \d+ and was answered ")

    def test_contents_of_schedules(self):
        for about, cached in (("strict", False), ("clients", False), ("rules", True)):
            with self.subTest(about=about):
                code, out, _ = sim("check", "--focus", about, "--schedules", 100)
                self.assertEqual(code, 0)
                self.assertEqual(int(re.search(r" (\d+) cached, ", out).group(1)) > 0, cached)

    def test_wrong_words(self):
        for words in ((), ("nope",), ("check", "--seed"), ("check", "--seed", "x"),
                      ("check", "--nope", "1"), ("check", "--bug", "nope"),
                      ("check", "--focus", "nope"),
                      ("check", "--jobs", "-1")):
            with self.subTest(words=words):
                code, out, err = sim(*words)
                self.assertEqual(code, 2)
                self.assertEqual(out, "")
                self.assertTrue(err)
        for old, new in (("about", "focus"), ("mistake", "bug")):
            code, _, err = sim("check", f"--{old}", "rules")
            self.assertEqual(code, 2)
            self.assertIn(f"option '--{old}' is now called '--{new}'", err)
        code, out, _ = sim("--help")
        self.assertEqual(code, 0)
        self.assertEqual(sim("check", "--seed", 5, "-h"), (0, out, ""))
        self.assertIn("--schedules", out)
        for about in ("anything", "strict", "clients", "rules", "fleet"):
            self.assertRegex(out, rf"(?m)^ +{about} +\w")
        self.assertIn(" run-twice ", out)
        self.assertIn(" joins-read-in-flight ", out)


if __name__ == "__main__":
    unittest.main()
