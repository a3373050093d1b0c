"""`python -m tests.faults [--kills N] [--damages N]`: the long run, as a table."""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Iterable

from tests.faults import around, damage, kills
from tests.faults.scenarios import SCENARIOS


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("--kills", type=int, default=200, help="Kills, over all runs.")
    parser.add_argument("--only", help="Kills of these commands alone, e.g. make,tokenizer train.")
    parser.add_argument("--damages", type=int, default=400, help="Damages, over all kinds.")
    parser.add_argument("--others", type=int, default=8, help="Trials of each of the other kinds.")
    options = parser.parse_args()
    failed = 0
    print("| what | trials | faults |\n|---|---|---|")
    chosen = [one for one in SCENARIOS if options.only is None or one.command in options.only.split(",")]
    share = -(-options.kills // (len(chosen) + 1))
    for scenario in chosen:
        outcomes = [kills.killed_at(scenario, point).fault for point in kills.some(scenario, share)]
        failed += told(f"killed: {scenario.name}", outcomes)
    if options.only is not None:
        return int(failed > 0)
    outcomes = [kills.worker_killed(random.Random(seed)).fault for seed in range(share)]
    failed += told(f"a worker or its parent killed: {kills.WORKERS}", outcomes)
    share = -(-options.damages // len(damage.DAMAGES))
    for name in damage.DAMAGES:
        missed = [damage.tried(name, seed) for seed in range(share)]
        failed += told(f"damage: {name}", [m and m.what for m in missed])
    for specs in (("trans,inv", "perm"), ("trans,inv", "trans,inv")):
        what = "two plans at once" if specs[0] != specs[1] else "one plan twice at once"
        failed += told(what, [around.two_runs(specs, seed) for seed in range(options.others)])
    for change in around.CHANGES:
        found = [around.changing_source(change, seed) for seed in range(2 * options.others)]
        failed += told(f"a source that {change}", found)
    try:
        failed += told("a full disk", [around.full_disk(size) for size in range(40, 40 + 30 * options.others, 30)])
        failed += told("a read-only disk", [around.read_only_disk()])
    except OSError as error:
        print(f"| full and read-only disks | {error} | |")
    return int(failed > 0)


def told(what: str, faults: Iterable[str | None]) -> int:
    """Print a row; the number of faults."""
    all_ = list(faults)
    found = [fault for fault in all_ if fault is not None]
    print(f"| {what} | {len(all_)} | {len(found)} |", flush=True)
    for fault in sorted(set(found))[:5]:
        print(f"    {fault[:300]}", file=sys.stderr, flush=True)
    return len(found)


if __name__ == "__main__":
    sys.exit(main())
