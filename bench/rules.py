"""The rules section of `make bench`: the cost of finding a key's rule (bench/rules.c)."""
from heat import run_program

ROWS = ["rules lookup"]


def run():
    saved = {}
    print(f"\n{'finding the rule of a key':66}{'target':32}measured", flush=True)
    run_program("rules", saved)
    return saved
