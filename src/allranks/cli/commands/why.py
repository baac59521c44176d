"""`allranks why`: say why a run, or a job whose logs were downloaded, has failed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from allranks.cli import completion
from allranks.cli.console import console, errors, plain, to_json
from allranks.cli.options import FolderOption, JsonOption, StepArgument
from allranks.errors import InputError, Problem
from allranks.history.nested import records_at
from allranks.history.records import Status, Verdict
from allranks.plan.walk import LEFT_OUT


def why(
    identity: Annotated[
        str,
        typer.Argument(
            metavar="RUN|FOLDER",
            help="A run as of `allranks show`, or a folder with logs that were downloaded from Azure ML.",
            autocompletion=completion.runs,
        ),
    ] = "latest",
    step: StepArgument = None,
    workspace: FolderOption = None,
    json: JsonOption = False,
) -> None:
    """Say why a run has failed: the rank that failed first, its exception, what followed, and what to do.

    In a folder, the logs user_logs/std_log_process_N.txt, 70_driver_log_N.txt and the like are read, also in folders
    below, and dumps of torch's Flight Recorder, nccl_trace_rank_N or rank_N. --json prints an array with one object per
    failed step.
    """
    found = _of_folder(Path(identity), step) if "/" in identity or Path(identity).is_dir() else None
    notes: Sequence[str] = ()
    if found is None:
        found, notes = _of_run(workspace, identity, step)
    if json:
        print(to_json(found))
    else:
        from rich.text import Text

        from allranks.cli.views.summary import explained

        lines = [line for verdict in found for line in (*explained(verdict), Text())]
        lines += [Text(plain(note), style="bright_black") for note in notes]
        console().print(Text("\n").join(lines if notes else lines[:-1]), soft_wrap=True)


def _of_folder(folder: Path, step: str | None) -> Sequence[Verdict]:
    from allranks.verdict.folder import verdicts

    found = verdicts(folder, lambda text: errors().print(text, soft_wrap=True, highlight=False))
    if step is not None:
        found = [verdict for verdict in found if verdict.step == step]
    if not found:
        raise InputError(Problem(str(folder), "its logs show no failure" + (f" of {step}" if step else "")))
    return found


def _of_run(workspace: Path | None, identity: str, step: str | None) -> tuple[Sequence[Verdict], Sequence[str]]:
    """Return the verdicts of a run, and its notes about what its code lacks."""
    from allranks.azure.watch import finder

    record = finder(workspace)(identity)
    steps = record.steps if step is None else records_at(record, step)
    found = [each.verdict for each in steps if each.verdict is not None]
    if not found:
        where = f"run {record.id}" + (f", step {step}" if step else "")
        if record.status is Status.INTERRUPTED:
            fix = f"to continue it: allranks resume {record.id}"
            raise InputError(Problem(where, "no step has failed: its engine died or was killed", "a failed step", fix))
        text = "; ".join(("it has not failed", *(f"{each.name}: {each.straggler}" for each in steps if each.straggler)))
        raise InputError(Problem(where, text, "a failed step", f"see: allranks show {record.id}"))
    return found, [note for note in record.notes if note.startswith(LEFT_OUT)]
