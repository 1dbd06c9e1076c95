"""Asks worlds from a seed on, for some time or so many of them.

    python -m tests.oracle --seed 1 --seconds 600
    python -m tests.oracle --seed 1 --worlds 1000 --statements 100

Each difference is shrunk and printed as a script. The exit code is 1 where there was one, or
where a long run never hit a rule, a refusal or a way to fetch, or too few cases used an index
or were selective.
"""

from __future__ import annotations

import argparse
import sys
import time
from itertools import count

from .exploring import explore
from .scripts import script
from .shrinking import shrunk
from .tally import Tally

_LONG = 20_000
"""From so many cases on, a run must have hit everything."""


def main() -> int:
    options = _options()
    started = time.monotonic()
    tally = Tally()
    differences = 0
    worlds = 0
    for seed in count(options.seed):
        if options.seconds is not None and time.monotonic() - started > options.seconds:
            break
        if options.worlds is not None and worlds == options.worlds:
            break
        for difference in explore(seed, options.statements, tally):
            differences += 1
            print(f"\n# Seed {seed}: {difference.words}", flush=True)
            if differences <= options.shrunk:
                smallest = shrunk(difference)
                if smallest is None:
                    print("# The case alone gives no difference:", difference.case.moment)
                    print("#", difference.case.statement.text(in_memory=False))
                else:
                    print(script(smallest), flush=True)
        worlds += 1
        if worlds % 50 == 0:
            print(f"{tally.cases} cases, seed {seed}", file=sys.stderr, flush=True)
    seconds = time.monotonic() - started
    last = options.seed + worlds - 1
    print(f"seeds {options.seed} to {last}, {options.statements} statements each")
    print(f"{differences} differences; {tally.cases / seconds:.1f} cases a second")
    print(tally.report())
    missed = tally.shortfalls() if tally.cases >= _LONG else []
    for one in missed:
        print(f"too little: {one}")
    return 1 if differences or missed else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.oracle", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="the first world's")
    parser.add_argument("--seconds", type=float, help="begin no world after this time")
    parser.add_argument("--worlds", type=int, help="end after so many worlds")
    parser.add_argument("--statements", type=int, default=120, help="of each world")
    parser.add_argument("--shrunk", type=int, default=5, help="how many differences to shrink")
    options = parser.parse_args()
    if options.seconds is None and options.worlds is None:
        options.seconds = 60.0
    return options


if __name__ == "__main__":
    sys.exit(main())
