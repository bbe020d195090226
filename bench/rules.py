"""The rules section of `make bench`: what it costs to find a key's rule (bench/rules.c)."""
from heat import run_program

ROWS = ["rules lookup"]


def run():
    saved = {}
    print(f"\n{'finding the rule of a key':66}{'asked':32}measured", flush=True)
    run_program("rules", saved)
    return saved
