"""The tools. Their names, signatures and docstrings are what an agent reads."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

from cattrs import structure

from allranks.api.engine_process import EngineProcess, start
from allranks.cli.commands.why import explanations, failures
from allranks.contract.report import truncated
from allranks.differences import Comparison, compare, previous, side
from allranks.errors import InputError, Problem, did_you_mean
from allranks.history import stored
from allranks.history.log_reader import print_logs
from allranks.history.records import RunRecord, Status, Verdict
from allranks.local.options import Options
from allranks.plan import codec
from allranks.text import when
from allranks.verdict.folder import verdicts
from allranks.workspace import Workspace
from allranks_mcp.results import MOST, CheckResult, LogPage, PlanResult, RunResult

Inputs = dict[str, str | int | float | bool]

PATIENCE = 300.0
"""Seconds in which a file must have been read."""


class Tools:
    """The tools for the project in the current folder. allows_run: whether the tool `run` starts runs"""

    def __init__(self, workspace: Workspace, *, allows_run: bool) -> None:
        self._workspace, self._allows_run = workspace, allows_run
        self._project = os.path.realpath(os.curdir)
        self._engines: list[EngineProcess] = []
        """An engine stops its run when nothing refers to it."""

    def check(self, file: str, inputs: Inputs | None = None, strict: bool = False) -> CheckResult:
        """Check a pipeline, job, component or schedule, or a folder of them, without running it.

        file: path in the project, FILE or FILE:NAME. inputs: of the pipeline. strict: warnings are errors, and so is
        advice about the designer.
        """
        return structure(self._in_new_process("check", file, inputs, strict), CheckResult)

    def plan(self, file: str, inputs: Inputs | None = None) -> PlanResult:
        """Show the steps of a pipeline, with their layouts, commands and inputs, without starting it.

        file: path in the project, FILE or FILE:NAME; or the name of a component. inputs: of the pipeline.
        """
        return structure(self._in_new_process("plan", file, inputs), PlanResult)

    def run(self, file: str, inputs: Inputs | None = None, wait: float = 60.0) -> RunResult:
        """Run a pipeline on this machine. Return its state when it has ended, or after `wait` seconds (at most 600).

        It then continues; the tool runs returns its state. file, inputs: as for plan.
        """
        if not self._allows_run:
            fix = "ask the user to start it with: allranks mcp --allow-run"
            raise InputError(Problem("run", "this server only reads", "", fix))
        read = self._in_new_process("read", file, inputs, str(self._workspace.root))
        identity, engine = start(codec.loads(read["plan"]), self._workspace, Options(**read["options"]))
        self._engines.append(engine)
        engine.wait(min(max(wait, 0.0), 600.0))
        return _result(stored.run(self._workspace, identity), read["warnings"])

    def runs(self, run: str = "", status: Status | None = None, limit: int = 10) -> Sequence[RunResult]:
        """List the runs of the project, the newest first.

        run: only this one, with its steps: an id, the beginning of one, or latest. limit: at most 50.
        """
        if run:
            return [_result(stored.run(self._workspace, run))]
        statuses = tuple(Status) if status is None else (status,)
        found = stored.runs(self._workspace, min(max(limit, 1), 50), statuses=statuses, steps=False)
        return list(map(_result, found))

    def why(self, run: str = "latest", step: str | None = None) -> Sequence[Verdict]:
        """Say why a run failed: the rank that failed first, its exception, what followed, and what to do.

        run: as for runs; or a folder in the project with logs that were downloaded from Azure ML. step: its path.
        """
        if "/" not in run and not os.path.isdir(run):
            return failures(stored.run(self._workspace, run), step)[:MOST]
        self._require_inside(run)
        return [verdict for verdict in verdicts(Path(run)) if step in (None, verdict.step)][:MOST]

    def explain(self, code: str = "") -> str:
        """Explain the code or the rule in a message, such as missing-package. Without a code, list them."""
        known = explanations()
        if code and code not in known:
            fix = did_you_mean(code, known, "explain without a code lists them")
            raise InputError(Problem(code, "no code and no rule has this name", "one from a message", fix))
        return known[code] if code else ", ".join(known)

    def logs(
        self, run: str = "latest", step: str | None = None, rank: int | None = None, first: int = 0, lines: int = 50
    ) -> LogPage:
        """Return a page of what the ranks of a run printed; by default its last lines.

        run: as for runs. step: path of a step or of a group. first: number of the page's first line, from 1. lines: at
        most 200.
        """
        record, most = stored.run(self._workspace, run), min(max(lines, 1), 200)
        with tempfile.TemporaryFile() as file:  # the logs may be larger than memory
            print_logs(record, step, rank, file)
            file.seek(0)
            total = sum(1 for _ in file)
            begin = first if first > 0 else max(0, total - most) + 1
            file.seek(0)
            page = [line.rstrip(b"\r\n").rpartition(b"\r")[2] for line in islice(file, begin - 1, begin - 1 + most)]
        return LogPage(record.id, begin, total, [truncated(line.decode("utf-8", "replace"), 500) for line in page])

    def diff(self, before: str = "latest", after: str = "") -> Comparison:
        """Compare two runs: what their steps depend on (code, inputs, packages), and their results; 30 of each at most.

        A single run is compared with the one before it of the same pipeline. before, after: as for runs.
        """
        runs = [stored.run(self._workspace, before)]
        other = stored.run(self._workspace, after or previous(self._workspace, runs[0]))
        runs.insert(1 if after else 0, other)
        found = compare(*(side(self._workspace, run) for run in runs))
        return replace(found, causes=found.causes[:MOST], results=found.results[:MOST])

    def _in_new_process(self, function: str, file: str, inputs: Mapping[str, Any] | None, *more: Any) -> Any:
        """Return the result of a function of `file_process`. Raise InputError as it does, or if the process fails."""
        values = [str(value).removeprefix("file://") for value in (inputs or {}).values()]
        paths = [value for value in values if os.path.isabs(value) or os.path.lexists(value)]
        self._require_inside(file, file.rpartition(":")[0] or file, *paths)
        command = [sys.executable, "-P", "-m", "allranks_mcp.file_process"]  # -P: without modules of the project
        task = json.dumps([function, file, inputs or {}, *more])
        try:
            done = subprocess.run(command, input=task, capture_output=True, encoding="utf-8", timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            raise InputError(Problem(file, f"it was not read within {PATIENCE:g} s", "a file that ends")) from None
        if done.returncode or not done.stdout:
            end = f"signal {-done.returncode}" if done.returncode < 0 else f"exit code {done.returncode}"
            last = "\n".join(["", *done.stderr.splitlines()[-5:]])
            raise InputError(Problem(file, f"the process that read it ended with {end}{last}"))
        answer = json.loads(done.stdout)
        if "problems" in answer:
            raise InputError(*structure(answer["problems"], list[Problem]))
        return answer["result"]

    def _require_inside(self, *paths: str) -> None:
        """Raise InputError if a path is outside of the project, also by a link."""
        for path in paths:
            place = "/" if "\0" in path else os.path.realpath(path)
            if os.path.commonpath([self._project, place]) != self._project:
                raise InputError(Problem(path, "it is outside of the project", f"a path in {self._project}"))


def _result(run: RunRecord, warnings: Sequence[str] = ()) -> RunResult:
    seconds = None if run.ended is None else round(run.ended - run.created, 1)
    steps = {step.name: str(step.status) for step in run.steps[:MOST]}
    failure = f"{run.verdict.step}: {run.verdict.reason}" if run.verdict else ""
    return RunResult(run.id, run.name, run.status, when(run.created), seconds, run.results, steps, failure, warnings)
