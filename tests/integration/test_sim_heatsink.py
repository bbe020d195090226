"""Goal: a client of the simulated heatsink (sim/heatsink.h, sim/proxy.h) over simulated servers hears what a
client of heatsink over Redis hears: so what the simulator says of heatsink is true of the binary.

Method: the same scripts (tests/lib/simulated_heatsink_scripts.py, and random ones) run against the binary in front of a
real Cluster and against the simulated one, for several seeds; what each client hears, replies and pushes in their order,
must be the same. Slots move key by key and come back, replicas take over with all or with what they have, masters stop
and crash while requests are under way, and keys are under rules.
"""
import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

import simulated
from cluster import ASKED_ONLY, Cluster
from simulated_heatsink import RealHeatsink, SimulatedHeatsink, has_refusals
from simulated_heatsink_scripts import SCRIPTS, script

SEEDS = range(1, 11)
ATTEMPTS = 8
RANDOM_SCRIPTS = 24
# Mistakes of the simulated heatsink or its servers, and a script that is about what they break.
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


def simulate(lines, image):
    """What clients hear for each seed. Where timing decides it may differ; most runs are alike."""
    runs = []
    for image.seed in SEEDS:
        runs.append(image.sequences(lines))
    return runs


class TestHeatsink(unittest.TestCase):
    def compare(self, lines):
        runs = simulate(lines, simulation)
        usual = max(runs, key=runs.count)
        self.assertGreater(runs.count(usual), len(SEEDS) // 2)
        for run in runs:
            if not has_refusals(run):
                self.check(run, usual)
        for _ in range(ATTEMPTS):
            said = real.sequences(lines)
            if said == usual:
                return
            if not has_refusals(said):
                break
        self.check(said, usual)

    def check(self, said, usual):
        self.assertEqual(set(said), set(usual))
        for name, replies in said.items():
            self.assertEqual(replies, usual[name], name)

    def test_scripts(self):
        for title, lines in SCRIPTS.items():
            with self.subTest(title):
                self.compare(lines)

    def test_random_scripts(self):
        for seed in range(RANDOM_SCRIPTS):
            with self.subTest(seed=seed):
                self.compare(script(seed))


class TestMistakes(unittest.TestCase):
    """A mistake in the simulation is heard in a script that is about it."""

    def test_planted_differences(self):
        for mistake, title in MISTAKES.items():
            right = simulate(SCRIPTS[title], simulation)[0]
            image = SimulatedHeatsink(mistake=mistake)
            self.addCleanup(image.end)
            wrong = [run for run in simulate(SCRIPTS[title], image) if run != right and not has_refusals(run)]
            with self.subTest(mistake):
                self.assertTrue(wrong)


if __name__ == "__main__":
    unittest.main()
