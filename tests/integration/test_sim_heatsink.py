"""Goal: a client of the simulated heatsink (sim/heatsink.h, sim/proxy.h) over simulated servers hears what a client of
heatsink over Redis hears: so what the simulator says of heatsink is true of the binary.

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
from simulated_heatsink import RealHeatsink, SimulatedHeatsink
from simulated_heatsink_scripts import SCRIPTS, script

SEEDS = range(1, 11)
ATTEMPTS = 8
RANDOM_SCRIPTS = 24
# Mistakes of the simulated heatsink or its servers, and a script that is about what they break.
MISTAKES = {
    "stale-map-write": "a slot that moves and comes back",
    "stale-map-read": "a slot that moves and comes back",
    "write-resent": "an outcome that nobody knows",
    "refused-but-run": "a slot that moves and comes back",
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


class TestHeatsink(unittest.TestCase):
    def hear(self, lines):
        """Of the binary, from a run in which nothing was refused because of timing."""
        for _ in range(ATTEMPTS):
            if said := real.sequences(lines):
                return said
        raise AssertionError("something is refused in every run")

    def simulate(self, lines, image=None):
        """For each seed with which nothing was refused because of timing; most are of that kind."""
        image, runs = image or simulation, []
        for seed in SEEDS:
            image.seed = seed
            if said := image.sequences(lines):
                runs.append(said)
        self.assertGreater(len(runs), len(SEEDS) // 2)
        return runs

    def compare(self, lines):
        said = self.hear(lines)
        for run in self.simulate(lines):
            self.assertEqual(set(said), set(run))
            for name, replies in said.items():
                self.assertEqual(replies, run[name], name)

    def test_scripts(self):
        for title, lines in SCRIPTS.items():
            with self.subTest(title):
                self.compare(lines)

    def test_random_scripts(self):
        for seed in range(RANDOM_SCRIPTS):
            with self.subTest(seed=seed):
                self.compare(script(seed))


class TestMistakes(unittest.TestCase):
    def test_a_mistake_is_heard(self):
        for mistake, title in MISTAKES.items():
            simulation.seed = 1
            right = simulation.sequences(SCRIPTS[title])
            image = SimulatedHeatsink(mistake=mistake)
            self.addCleanup(image.end)
            wrong = []
            for image.seed in SEEDS:
                wrong.append(image.sequences(SCRIPTS[title]))
            with self.subTest(mistake):
                self.assertTrue(any(said and said != right for said in wrong))


if __name__ == "__main__":
    unittest.main()
