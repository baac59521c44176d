"""Run only the checks that precede every training."""

import os

from allranks import runtime
from allranks.contract.variables import SIZE
from allranks.hardware.sizes import find
from allranks.runtime.preflight import findings


def main() -> None:
    args = runtime.arguments()
    os.environ[findings.REPORT_VARIABLE] = str(args.report / "preflight.json")
    if args.size:
        os.environ[SIZE] = find(args.size, "preflight, input size").name
    runtime.main(log_report)


def log_report(ranks: runtime.Ranks) -> None:
    """Log the report. This is called only after all checks have passed."""
    ranks.metrics.log_artifact(os.environ[findings.REPORT_VARIABLE])


if __name__ == "__main__":
    main()
