"""Reads the rows of the lists of counters (src/base/counter.h) from the source: what INFO, /metrics and the docs must
show.
"""
import collections
import glob
import os
import re

from servers import ROOT

Row = collections.namedtuple("Row", "list field kind section name metric help more")

LIST = re.compile(r"#define (HS_\w+_COUNTERS)\(ROW\)((?:.*\\\n)*.*)")
TEXT = r'(NULL|"[^"]*")'
ROW = re.compile(rf'ROW\((\w+), (HS_\w+), {TEXT}, {TEXT}, {TEXT},\s*((?:"[^"]*"\s*)+|NULL)([^"]*?(?:"[^"]*")?)\)')

# Rows of these lists are no fields of a section: they have a line and a metric per command or per rule.
COMMANDS, RULES = "HS_COMMAND_COUNTERS", "HS_CACHE_RULE_COUNTERS"


def text(literal):
    """The value of one or several adjacent C string literals; None for NULL."""
    return None if literal == "NULL" else "".join(re.findall(r'"([^"]*)"', literal))


def all_rows():
    """Every row of every list. A row that cannot be parsed is an error."""
    rows = []
    for path in sorted(glob.glob(os.path.join(ROOT, "src", "**", "*.h"), recursive=True)):
        with open(path, encoding="utf-8") as file:
            source = re.sub(r"/\*.*?\*/", "", file.read(), flags=re.S)
        for name, body in LIST.findall(source):
            body = body.replace("\\\n", " ")
            found = ROW.findall(body)
            if len(found) != len(re.findall(r"\bROW\(", body)) or not found:
                raise ValueError(f"{path}: rows of {name} that cannot be read")
            rows += [Row(name, field, kind, text(section), text(shown), text(metric), text(words), more)
                     for field, kind, section, shown, metric, words, more in found]
    return rows


def fields():
    """The rows that are fields of an INFO section."""
    return [row for row in all_rows() if row.list not in (COMMANDS, RULES) and row.name]


def metric_type(row):
    return "counter" if row.kind in ("HS_COUNTER", "HS_TOTAL") else "gauge"


def factor(row):
    found = re.search(r"\.factor = ([\d.e-]+)", row.more)
    return float(found.group(1)) if found else 1
