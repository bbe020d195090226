"""Goal: the simulated Redis servers (sim/cluster.h) answer as real ones do, so that results of the simulator hold for
heatsink in front of Redis.

Method: scripts of clients, slot moves and failovers (tests/lib/simulated_scripts.py, and random ones) run against a
real Cluster and the simulated one. Each connection must receive the same replies and pushes in the same order,
whatever the seed of the simulation. Where timing decides (tests/lib/simulated_races.py), a list has all answers seen
from Redis; the simulated Cluster must give each of them with some seed, and no other.
"""

import os
import random
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

import servers
import simulated
import simulated_faults
import simulated_races
import simulated_random
from cluster import ASKED_ONLY, Cluster
from simulated_scripts import GROUPS

SEEDS = (1, 2, 3)
RACE_SEEDS = range(1, 61)
RACE_RUNS = 8
RANDOM_SCRIPTS = 24
NODE_TIMEOUT_MS = 5000
CLUSTER_ARGS = (*ASKED_ONLY, "--enable-debug-command", "yes")


def setUpModule():
    global cluster, real, simulation
    simulation = simulated.Simulated()
    cluster = Cluster(simulated.MASTERS, simulated.REPLICAS, node_timeout_ms=NODE_TIMEOUT_MS,
                      args=CLUSTER_ARGS)
    real = simulated.Real(cluster)
    for node in cluster.nodes:
        node.call("DEBUG", "SET-ACTIVE-EXPIRE", "0")  # keys expire only when they are accessed


def tearDownModule():
    cluster.close()
    simulation.end()


def is_for_one_node(script):
    """True if the script connects to node 0 only and freezes no node."""
    nodes = {line.split()[2] for line in script if line.startswith("connect")}
    return nodes == {"0"} and not any(line.startswith("stall") for line in script)


class Case(unittest.TestCase):
    def compare(self, script, truth=None, image=None):
        """Runs the script in both worlds; compares line by line and connection by connection."""
        image = image or simulation
        said = simulated.join(script, (truth or real).run(script))
        runs = []
        for seed in SEEDS:
            image.seed = seed
            runs.append(simulated.join(script, image.run(script)))
        for at, (number, heard) in enumerate(said):
            for name in sorted(set(heard).union(*(run[at][1] for run in runs))):
                may = [run[at][1].get(name) for run in runs]
                if any(one != heard.get(name) for one in may):
                    context = "\n    ".join(script[max(0, number - 12):number + 1])
                    self.fail(f"{name} hears of Redis\n  {heard.get(name)}\nsimulated\n  "
                              + "\n  ".join(map(str, may)) + f"\nbehind\n    {context}")


class TestRules(Case):
    def check(self, group):
        for title, script in GROUPS[group].items():
            with self.subTest(title):
                self.compare(script)

    def test_routes(self):
        self.check("routes")

    def test_data(self):
        self.check("data")

    def test_transactions(self):
        self.check("transactions")

    def test_tracking(self):
        self.check("tracking")

    def test_channels(self):
        self.check("channels")

    def test_waits(self):
        self.check("waits")

    def test_failovers(self):
        self.check("failovers")


class TestAlone(Case):
    """A server that is not part of a Cluster."""

    def setUp(self):
        server = servers.Redis("--enable-debug-command", "yes")
        self.addCleanup(server.close)
        self.truth, self.image = simulated.Alone(server), simulated.Simulated(1, 0)
        self.addCleanup(self.image.end)
        self.truth.ask_node(0, "DEBUG", "SET-ACTIVE-EXPIRE", "0")

    def test_scripts_for_one_node(self):
        ran = 0
        for scripts in GROUPS.values():
            for title, script in scripts.items():
                if is_for_one_node(script):
                    ran += 1
                    with self.subTest(title):
                        self.compare(script, self.truth, self.image)
        self.assertGreater(ran, 20)


class TestMistakes(Case):
    """The comparison finds a switched-off rule of the simulation, in a script about this rule."""

    MISTAKES = {
        "asking-kept": GROUPS["routes"]["asking"],
        "lost-writes-served": GROUPS["routes"]["moved to the owner"],
        "pushes-first": GROUPS["tracking"]["own changes"],
        "silent-moves": GROUPS["transactions"]["watch and move"],
        "watches-kept": GROUPS["transactions"]["watch"],
    }

    def test_planted_differences(self):
        for mistake, script in self.MISTAKES.items():
            image = simulated.Simulated(mistake=mistake)
            self.addCleanup(image.end)
            with self.subTest(mistake), self.assertRaisesRegex(AssertionError, "hears of Redis"):
                self.compare(script, image=image)


class TestFaults(Case):
    """Servers that freeze, crash, or take over with incomplete data; in a Cluster of its own."""

    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(simulated.MASTERS, simulated.REPLICAS, node_timeout_ms=NODE_TIMEOUT_MS,
                              args=CLUSTER_ARGS)
        cls.addClassCleanup(cls.cluster.close)
        cls.truth = simulated_faults.RealFaults(cls.cluster)
        cls.image = simulated_faults.SimulatedFaults()
        cls.addClassCleanup(cls.image.end)

    def check(self, scripts):
        for title, script in scripts.items():
            with self.subTest(title):
                self.compare(script, self.truth, self.image)

    def test_takeovers(self):
        self.check(simulated_faults.TAKEOVERS)

    def test_faults(self):
        self.check(simulated_faults.FAULTS)

    def test_races(self):
        seed, image = random.randrange(2**32), simulated_races.SimulatedRaces()
        truth = simulated_races.RealRaces(self.cluster, seed)
        self.addCleanup(image.end)
        for title, (script, answers) in simulated_races.RACES.items():
            with self.subTest(title, seed=seed):
                # The same replica can take over only once in a while: see Real.failover.
                runs = 1 if "takes_over 5" in script else RACE_RUNS
                said = {simulated_races.answers(script, truth.run(script)) for _ in range(runs)}
                self.assertLessEqual(said, answers)
                simulated_said = set()
                for image.seed in RACE_SEEDS:
                    simulated_said.add(simulated_races.answers(script, image.run(script)))
                self.assertEqual(simulated_said, answers)


class TestRandom(Case):
    def test_random_scripts(self):
        for seed in range(RANDOM_SCRIPTS):
            with self.subTest(seed=seed):
                self.compare(simulated_random.script(seed))

    def test_random_script_with_a_failover(self):
        self.compare(simulated_random.script(RANDOM_SCRIPTS, fails_over=True))


if __name__ == "__main__":
    unittest.main()
