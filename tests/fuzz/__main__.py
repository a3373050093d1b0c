"""`python -m tests.fuzz [READER ...] [--inputs N] [--first NUMBER] [--seconds S] [--seed K] [--json]`"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from collections import Counter

from tests.fuzz.harness import limit_memory, run
from tests.fuzz.readers import READERS


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("readers", nargs="*", metavar="READER", help="Readers to try.  [default: all]")
    parser.add_argument("--inputs", type=int, default=1000, help="Inputs for each reader.")
    parser.add_argument("--seconds", type=float, help="CPU time for each reader, at most.")
    parser.add_argument("--seed", type=int, default=0, help="Another seed gives other inputs.")
    parser.add_argument(
        "--first", type=int, default=0, help="Number of the first input: one of a run, or where it stopped."
    )
    parser.add_argument("--json", action="store_true", help="One JSON object a line: inputs begun, faults, totals.")
    options = parser.parse_args()
    names = options.readers or list(READERS)
    for name in names:
        READERS[name].seeds()  # before memory is bounded: some train a model
    limit_memory()
    failed = False
    numbers = range(options.first, options.first + options.inputs)
    if not options.json:
        print(f"{'reader':<28}{'inputs':>9}{'seconds':>9}  faults")
    for name in names:
        began, done, seen = time.monotonic(), 0, Counter[str]()
        told: set[str] = set()
        for number, fault in run(READERS[name], numbers, options.seed, options.seconds):
            done += number >= 0
            if fault is None:
                continue
            failed = True
            seen[fault.kind] += 1
            if options.json:
                print(json.dumps(fault.to_json()), flush=True)
            elif (sort := re.sub(r"\d+", "0", fault.what)[:80]) not in told and len(told) < 20:
                told.add(sort)
                print(f"  {fault.kind} in input {number} of {name!r}: {fault.what}", file=sys.stderr)
        seconds = time.monotonic() - began
        if options.json:
            print(json.dumps({"reader": name, "inputs": done, "seconds": round(seconds, 1), **seen}), flush=True)
        else:
            print(f"{name:<28}{done:>9,}{seconds:>9.1f}  {dict(seen) or 0}", flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
