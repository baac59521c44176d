"""The programs of a step's ranks: the shell with the step's command, each rank's environment, log and report file."""

import json
import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from allranks.contract import logs, report
from allranks.contract.launch import Launch, Process
from allranks.contract.produce import Job, job_environment, processes
from allranks.contract.templating import render
from allranks.history.node_records import job_name
from allranks.history.records import RankRecord, StepRecord
from allranks.local.attempt.stage import StagedInstance
from allranks.local.boot import SOURCE
from allranks.local.instances.supervisor import Program
from allranks.local.launchers.launching import rank_name
from allranks.plan import mltable
from allranks.plan.graph import Parallel, Step
from allranks.plan.ports import PRIMITIVES

MINI_BATCH_PROGRAM = f"{SOURCE}/allranks/local/parallel/program.py"
MINI_BATCHES = "mini-batches"
"""The folder of a parallel step for the settings of its program, and for the socket that its instances share."""


@dataclass(frozen=True)
class RankProgram:
    """A rank of one attempt. report: the file in which its process reports progress, metrics and a failure"""

    process: Process
    program: Program
    report: Path


# Over 60 lines: a third of it lists the parts of a rank, which has no shorter form.
def rank_programs(
    settings: Job,
    shell: str,
    step: Step,
    record: StepRecord,
    launch: Launch,
    staged: Sequence[StagedInstance],
    step_variables: Mapping[str, str],
    machine_variables: Sequence[Mapping[str, str]],
) -> Iterator[RankProgram]:
    """Yield the ranks of an attempt, after adding each to the record and creating its log.

    settings:          those of the run
    shell:             the shell that runs the commands
    step_variables:    the variables of the kind of instances, and the step's environment variables
    machine_variables: the variables that every process on an instance needs, for each instance
    """
    folder = Path(record.folder)
    if step.parallel is None:
        commands = [render(step.command, instance.inputs, instance.outputs) for instance in staged]
    else:
        commands = [
            mini_batch_command(step, step.parallel, record, instance, rank) for rank, instance in enumerate(staged)
        ]
    primitives = [port.name for port in step.inputs if port.type in PRIMITIVES]
    record.ranks = []
    for process in processes(launch):
        instance = staged[process.instance_rank]
        inputs = {name: value for name, value in instance.inputs.items() if value is not None}
        job = replace(
            settings,
            run_id=job_name(settings.root_run_id, record.name),
            tracking_uri=settings.tracking_uri if record.mlflow_run_id else None,
            mlflow_run_id=record.mlflow_run_id,
            inputs=inputs,
            outputs=instance.outputs,
            parameters={name: inputs[name] for name in primitives if name in inputs},
        )
        # Each attempt has its own report file, so that an earlier failure does not count for a retry.
        report_file = folder / "reports" / f"{record.attempt}_rank_{process.rank}.jsonl"
        environment = {
            **machine_variables[process.instance_rank],
            report.VARIABLE: str(report_file),
            **job_environment(job, launch, process),
            **step_variables,
        }
        log = folder / logs.log_of(launch, process, record.attempt)
        if record.attempt:  # the logs of a retry have their own folder
            log.parent.mkdir(parents=True, exist_ok=True)
        log.touch(0o600)
        hostname = launch.hostnames[process.instance_rank]
        record.ranks.append(RankRecord(process.rank, process.instance_rank, process.local_rank, hostname, log=str(log)))
        arguments = (shell, "-c", commands[process.instance_rank])
        program = Program(rank_name(process.rank), arguments, environment, str(instance.code), str(log))
        yield RankProgram(process, program, report_file)


def mini_batch_command(step: Step, parallel: Parallel, record: StepRecord, instance: StagedInstance, rank: int) -> str:
    """Write the settings of a parallel step's program on an instance. Return the command that runs the program.

    Raise OSError if an MLTable cannot be read.
    """
    folder = Path(record.folder, MINI_BATCHES)
    folder.mkdir(exist_ok=True)
    # Processes of an engine that was just killed may still read the settings of their own attempt.
    hub = f"hub-{record.attempt}-{os.getpid()}"
    if rank == 0:
        for earlier in folder.glob("hub-*"):  # by an earlier attempt
            earlier.unlink()
    inputs = []
    for name in parallel.data:
        path = instance.inputs[name]
        if path is not None:
            table = mltable.read(Path(path))
            inputs.append((path, table.paths, table.transformations) if table else (path, None, []))
    settings = {
        **asdict(parallel),
        "inputs": inputs,
        "append": render(parallel.append_row_to, instance.inputs, instance.outputs),
        "concurrency": parallel.max_concurrency,
        "rank": rank,
        "count": step.instance_count,
        "socket": str(folder / hub),
        "report": report.__file__,
    }
    file = folder / f"{hub}-{rank}.json"
    file.write_text(json.dumps(settings), encoding="utf-8")
    rendered = render(step.command, instance.inputs, instance.outputs).removeprefix("python ")
    return f"python {shlex.quote(MINI_BATCH_PROGRAM)} {shlex.quote(str(file))} {rendered}"
