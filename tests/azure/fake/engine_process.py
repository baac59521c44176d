"""The engine's own process: runs a plan from a file and tells of every change, one line of JSON each."""

from __future__ import annotations

import sys
from pathlib import Path

from allranks.errors import InputError
from allranks.history.observer import Observer
from allranks.history.records import RunRecord, StepRecord
from allranks.history.workspace import Workspace
from allranks.local.engine import run
from allranks.local.options import Options
from allranks.plan.codec import converter
from allranks.plan.graph import Plan


class Teller(Observer):
    """Tells of a run by its whole record: whoever listens needs to remember nothing."""

    def __init__(self) -> None:
        self._out = sys.stdout
        sys.stdout = sys.stderr

    def started(self, run: RunRecord) -> None:
        self._tell(run)

    def changed(self, run: RunRecord, step: StepRecord) -> None:
        self._tell(run)

    def ended(self, run: RunRecord) -> None:
        self._tell(run)

    def _tell(self, run: RunRecord) -> None:
        print(converter().dumps(run), file=self._out, flush=True)


def main() -> None:
    """``engine_process.py PLAN WORKSPACE TRACK``: exit code 2 where the plan cannot run."""
    plan, workspace, track = sys.argv[1:]
    try:
        run(
            converter().loads(Path(plan).read_text(encoding="utf-8"), Plan),
            Workspace(Path(workspace)),
            Options(instances="loopback", slots=16, track=track == "track"),
            Teller(),
        )
    except InputError as error:
        print(error, file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
