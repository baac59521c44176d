"""The command of a parallel step on one instance: the program that runs the step's script on mini-batches."""

from __future__ import annotations

import json
import os
import shlex
from dataclasses import asdict
from pathlib import Path

from allranks.contract import report
from allranks.contract.templating import render
from allranks.history.records import StepRecord
from allranks.local.attempt.stage import InstanceFolders
from allranks.local.boot import SOURCE
from allranks.plan import mltable
from allranks.plan.graph import Parallel, Step

PROGRAM = f"{SOURCE}/allranks/local/parallel/program.py"
FOLDER = "mini-batches"
"""The folder of a step with the results of finished mini-batches, which later attempts use."""


def command(step: Step, parallel: Parallel, record: StepRecord, instance: InstanceFolders, rank: int, key: str) -> str:
    """Return the command for an instance, after writing the settings that it reads.

    key: of the result of the step; only the results of mini-batches under the same key are used again

    Raise OSError if an MLTable cannot be read.
    """
    folder = Path(record.folder, FOLDER)
    folder.mkdir(exist_ok=True)
    # The processes of an engine that was just killed may still read their settings: they must not find these.
    hub = f"hub-{record.attempt}-{os.getpid()}"
    if rank == 0:
        for left in folder.glob("hub-*"):  # by an earlier attempt
            left.unlink()
    ports = instance.ports
    inputs = []
    for name in parallel.data:
        path = ports.inputs[name]
        if path is not None:
            table = mltable.read(Path(path))
            inputs.append((path, table.paths, table.transformations) if table else (path, None, []))
    settings = {
        **asdict(parallel),
        "inputs": inputs,
        "append": render(parallel.append_row_to, ports.inputs, ports.outputs),
        "concurrency": parallel.max_concurrency,
        "rank": rank,
        "count": step.instance_count,
        "key": key,
        "socket": str(folder / hub),
        "journal": str(folder / "results.jsonl"),
        "report": report.__file__,
    }
    file = folder / f"{hub}-{rank}.json"
    file.write_text(json.dumps(settings), encoding="utf-8")
    rendered = render(step.command, ports.inputs, ports.outputs).removeprefix("python ")
    return f"python {shlex.quote(PROGRAM)} {shlex.quote(str(file))} {rendered}"
