"""Run only the checks that precede every training."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from allranks import runtime
from allranks.contract.own_variables import SIZE
from allranks.errors import InputError
from allranks.hardware.sizes import find
from allranks.runtime import failure
from allranks.runtime.preflight import report


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--size")
    parser.add_argument("--report", type=Path, required=True)
    args = parser.parse_args()
    os.environ[report.VARIABLE] = str(args.report / "preflight.json")
    if args.size:
        try:
            os.environ[SIZE] = find(args.size, "preflight, input size").name
        except InputError as error:
            sys.exit(failure.record(error))
    runtime.main(keep)


def keep(ranks: runtime.Ranks) -> None:
    """Log the report. This is called only after all checks have passed."""
    ranks.metrics.log_artifact(os.environ[report.VARIABLE])


if __name__ == "__main__":
    main()
