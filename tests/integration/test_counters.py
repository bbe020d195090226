"""Goal: a counter is one row in the source. That row decides what operators see: a field in its section of INFO, a
metric with type and help, a line in docs/METRICS.md, and whether CONFIG RESETSTAT sets it to 0.

Method: the rows are read from the source (tests/lib/counters.py) and looked up in a server's INFO and metrics.
Clients make counters of every kind grow, CONFIG RESETSTAT runs, and each counter is read again.
tests/unit/test_totals.c tests that every row is summed over the workers and reset by its kind.
"""
import os
import re
import sys
import unittest
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

import counters
from cases import ServerCase
from servers import GUARD_S, ROOT

KEYS = 200
SMALL = KEYS // 2  # the test's own INFO requests add less than this to a counter


class Counters(ServerCase):
    args = ("--workers", "2", "--sync", "off", "--rule", "rule:* cache")

    def sections(self):
        """INFO: a dict of fields for each section."""
        client = self.connect()
        client.call("INFO")  # so that commandstats already lists INFO in the next reply
        text = client.call("INFO", "everything").text.decode()
        found = {}
        for section in text.split("# ")[1:]:
            name, *lines = section.split("\r\n")
            found[name] = dict(line.split(":", 1) for line in lines if ":" in line)
        return found

    def page(self):
        url = f"http://127.0.0.1:{self.server.http_port}/metrics"
        with urllib.request.urlopen(url, timeout=GUARD_S) as answer:
            return answer.read().decode()

    def test_every_row_is_in_info(self):
        sections = self.sections()
        for row in counters.fields():
            with self.subTest(row.name):
                self.assertIn(row.name, sections[row.section])
        lines = {counters.RULES: sections["Rules"]["rule0"], counters.COMMANDS: sections["Commandstats"]["cmdstat_info"]}
        for row in counters.all_rows():
            if row.list in lines:
                with self.subTest(row.name):
                    self.assertRegex(lines[row.list], rf"\b{row.name}=\d")

    def test_every_row_is_a_metric_and_in_the_docs(self):
        page = self.page()
        with open(os.path.join(ROOT, "docs", "METRICS.md"), encoding="utf-8") as file:
            docs = file.read()
        rows = [row for row in counters.all_rows() if row.metric]
        self.assertGreater(len(rows), 80)
        for row in rows:
            name = "heatsink_" + ("rule_" if row.list == counters.RULES else "") + row.metric
            with self.subTest(name):
                self.assertIn(f"# HELP {name} {row.help}\n"
                              f"# TYPE {name} {counters.metric_type(row)}\n", page)
                self.assertRegex(docs, rf"\| `{name}` \| {counters.metric_type(row)} \| [^|]*\| "
                                       + re.escape(row.help) + r" \|")

    def test_no_metric_is_there_twice(self):
        families = re.findall(r"^# TYPE (\S+)", self.page(), re.M)
        self.assertEqual(len(families), len(set(families)))

    def values(self):
        sections = self.sections()
        return {row.name: int(sections[row.section][row.name]) for row in counters.fields()}

    def test_resetstat(self):
        client = self.connect()
        for at in range(KEYS):
            client.call("SET", f"counted:{at}", at)
            client.call("GET", f"counted:{at}")
            client.call("GET", f"missing:{at}")
            client.call("INCR", "counted", at)  # an error
            self.page()
        before = self.values()
        client.call("CONFIG", "RESETSTAT")
        after = self.values()
        grown = {row.kind: [] for row in counters.fields()}
        for row in counters.fields():
            if before[row.name] < KEYS:
                continue
            grown[row.kind].append(row.name)
            with self.subTest(row.name):
                if row.kind == "HS_COUNTER":
                    self.assertLess(after[row.name], before[row.name] - SMALL)
                elif row.kind == "HS_TOTAL":
                    self.assertGreaterEqual(after[row.name], before[row.name])
        for name in ("total_commands_processed", "total_error_replies", "keyspace_hits", "keyspace_misses",
                     "commits", "total_net_input_bytes"):
            self.assertIn(name, grown["HS_COUNTER"])
        for name in ("changes_since_start", "http_requests"):
            self.assertIn(name, grown["HS_TOTAL"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
