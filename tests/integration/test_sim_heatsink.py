"""Goal: a client of the simulated heatsink over simulated servers receives what a client of the real binary over Redis
receives, so that results of the simulator hold for the binary.

Method: the same scripts (tests/lib/simulated_heatsink_scripts.py, and random ones) run against the binary in front of
a real Cluster and against the simulation, for many seeds. The test compares the sequence of replies and pushes of each
client. Slots move key by key and come back, replicas take over with complete or incomplete data, masters freeze and
crash while requests are in flight, and keys are under rules.

  - Each real sequence must be one of the simulated sequences.
  - Each simulated sequence without refusals, and the most frequent one, must also occur with the binary.
  - Where timing decides which requests heatsink refuses there are too many sequences for that. Then the replies to
    the other requests must equal the binary's replies to the same script without the refused requests.
"""
import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

import simulated
from cluster import ASKED_ONLY, Cluster
from simulated_heatsink import RealHeatsink, SimulatedHeatsink, has_refusals, leave_out_refused
from simulated_heatsink_scripts import SCRIPTS, script

SEEDS = range(1, 21)
MORE_SEEDS = range(21, 201)  # tried in addition for a real sequence that SEEDS did not give
REAL_RUNS = 3    # runs of the binary at least, unless a script takes long
ATTEMPTS = 10    # runs of the binary at most, until every simulated sequence has occurred
WRONG_ATTEMPTS = 2  # the same for a planted mistake, which never occurs
REFUSED_MAX = 4  # simulated runs with refusals that are checked
RANDOM_SCRIPTS = 24
# Planted mistakes of the simulated heatsink or its servers, each with a script that shows it.
MISTAKES = {
    "resend-lost": "an outcome that nobody knows",
    "stale-map-write": "tracking",
    "write-resent": "an outcome that nobody knows",
}


def setUpModule():
    global cluster, real, simulation
    simulation = SimulatedHeatsink()
    cluster = Cluster(simulated.MASTERS, simulated.REPLICAS, node_timeout_ms=5000,
                      args=(*ASKED_ONLY, "--enable-debug-command", "yes"))
    real = RealHeatsink(cluster)


def tearDownModule():
    cluster.close()
    simulation.end()


def simulate(lines, image, seeds):
    """The sequences of all clients, for each seed."""
    for image.seed in seeds:
        yield image.sequences(lines)


def replaces_a_master(lines):
    """True if the script replaces a master; this takes long when repeated: see Real.failover."""
    return any(line.startswith(("failover", "takeover")) for line in lines)


class Case(unittest.TestCase):
    def compare(self, lines, image=None, real_runs=1, attempts=ATTEMPTS):
        image = image or simulation
        runs = list(simulate(lines, image, SEEDS))
        usual = max(runs, key=runs.count)
        unheard = [usual] + [run for run in runs if run != usual and not has_refusals(run)]
        for run in [run for run in runs if has_refusals(run) and run != usual][:REFUSED_MAX]:
            self.check_beside_refusals(lines, run, "simulated")
        for attempt in range(attempts):
            said = real.sequences(lines)
            self.check_real(lines, image, runs, said)
            unheard = [run for run in unheard if run != said]
            if not unheard and attempt + 1 >= real_runs:
                return
        if unheard:
            self.differ(said, unheard[0], "what was simulated was never heard of heatsink")

    def check_real(self, lines, image, runs, said):
        if said in runs or said in simulate(lines, image, MORE_SEEDS):
            return
        if has_refusals(said):
            self.check_beside_refusals(lines, said, "real")
        else:
            self.differ(said, max(runs, key=runs.count), "what heatsink said was never simulated")

    def check_beside_refusals(self, lines, said, world):
        left = leave_out_refused(lines, said)
        if left:
            self.differ(real.sequences(left[0]), left[1], f"beside what the {world} heatsink refused")

    def differ(self, said, expected, why):
        """Fails if a client's sequences differ."""
        for name in sorted(set(said) | set(expected)):
            self.assertEqual(said.get(name), expected.get(name), f"{name}: {why}")


class TestHeatsink(Case):
    def test_scripts(self):
        for title, lines in SCRIPTS.items():
            with self.subTest(title):
                self.compare(lines, real_runs=1 if replaces_a_master(lines) else REAL_RUNS)

    def test_random_scripts(self):
        for seed in range(RANDOM_SCRIPTS):
            with self.subTest(seed=seed):
                self.compare(script(seed))


class TestMistakes(Case):
    """The comparison finds a planted mistake of the simulation, in a script about it."""

    def test_planted_differences(self):
        for mistake, title in MISTAKES.items():
            image = SimulatedHeatsink(mistake=mistake)
            self.addCleanup(image.end)
            with self.subTest(mistake), self.assertRaisesRegex(AssertionError, "heatsink"):
                self.compare(SCRIPTS[title], image, attempts=WRONG_ATTEMPTS)

    def test_a_wrong_answer_beside_refusals(self):
        lines = SCRIPTS["pipelines while a slot moves"]
        run = next(run for run in simulate(lines, simulation, MORE_SEEDS) if has_refusals(run))
        self.check_beside_refusals(lines, run, "simulated")
        run["a"][-1] = b"*0\r\n"
        with self.assertRaisesRegex(AssertionError, "beside what"):
            self.check_beside_refusals(lines, run, "simulated")


if __name__ == "__main__":
    unittest.main()
