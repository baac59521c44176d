"""Prove a migration: start each job as v1 starts it, run the pipeline that was written, and compare both by rank."""

import json
import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from allranks.api import jobs
from allranks.contract.distributions import DISTRIBUTIONS
from allranks.contract.single import Single
from allranks.history.records import RunRecord, StepRecord
from allranks.local import engine
from allranks.local.options import Options
from allranks.plan import digest
from allranks.plan.graph import Step
from allranks.plan.walk import with_steps
from allranks.workspace import Workspace
from allranks_migrate import Migration
from allranks_migrate.jobs import Job
from allranks_migrate.ports import with_literals

_FOLDER = "ALLRANKS_PROOF"
_PROBE = f"""\
import json, os
folder = os.environ.pop("{_FOLDER}", "")
if folder:
    with open(os.path.join(folder, str(os.getpid()) + "-" + os.urandom(4).hex()), "w") as file:
        words = open("/proc/self/cmdline").read().split(chr(0))  # sys.orig_argv is new in Python 3.10
        json.dump({{"arguments": words[1:-1], "variables": dict(os.environ)}}, file)
"""
"""Python imports it at its start, as sitecustomize. The first Python program of a rank records its start."""

_ADDRESS = re.compile(r"\d+\.\d+\.\d+\.\d+(:\d+)?")
_OWN = re.compile(
    r"AZUREML_RUN|AZUREML_ROOT|MLFLOW|ALLRANKS_|PYTHONPATH|OMPI_(?!COMM_WORLD)|PMIX|PRTE|HOSTNAME|TMPDIR|_$"
)
"""Variables that differ between any two runs, and those for Open MPI's internal use."""

_RANKS = ("RANK", "OMPI_COMM_WORLD_RANK", "AZUREML_CR_NODE_RANK")


@dataclass(frozen=True)
class Comparison:
    """A step with v1 and with azure-ai-ml. ranks: the number of equal ranks; differences: one line for each"""

    step: str
    ranks: int
    variables: int
    outputs: int
    differences: tuple[str, ...]


def prove(migration: Migration, workspace: Workspace) -> tuple[Comparison, ...]:
    """Run the jobs of v1 and the pipeline that was written, and return a comparison for each step with a command; none
    for a component.

    Raise InputError if the pipeline cannot run on this machine.
    """
    if migration.content is None:
        return ()
    plan = jobs.read(str(migration.file), {}, workspace, Options(track=False))
    by_name = {job.name: job for job in migration.content.jobs if job.sweep is None and "command" in job.spec}
    with tempfile.TemporaryDirectory(prefix="proof-", dir=workspace.root) as folder:
        Path(folder, "sitecustomize.py").write_text(_PROBE)

        def run_probed(side: str) -> tuple[RunRecord, Path]:
            def change(step: Step, path: str) -> Step:
                own = step if side == "v2" or path not in by_name else _as_v1(step, by_name[path])
                target = Path(folder, side, path)
                target.mkdir(parents=True)
                variables = {**step.environment_variables, "PYTHONPATH": folder, _FOLDER: str(target)}
                return replace(own, environment_variables=variables)

            changed = replace(plan, graph=with_steps(plan.graph, change))
            return engine.run(changed, workspace, Options(force_rerun=True, track=False, cold=True)), Path(folder, side)

        v1, v2 = run_probed("v1"), run_probed("v2")
        return tuple(_compare(job, v1, v2) for job in by_name.values())


def _as_v1(step: Step, job: Job) -> Step:
    """Return a step with the command and the processes of v1."""
    settings, instances = dict(job.spec["distribution"]), job.spec["resources"]["instance_count"]
    kind = settings.pop("type", "")
    if "process_count_per_instance" in settings:
        settings["process_count_per_instance"] = job.processes // instances or 1
    own = DISTRIBUTIONS[kind](**settings) if kind else Single()
    command = with_literals(job.spec["command"], job.inputs)
    return replace(step, command=command, distribution=own, instance_count=instances)


def _compare(job: Job, v1: tuple[RunRecord, Path], v2: tuple[RunRecord, Path]) -> Comparison:
    old, new = (_ranks(record.step(job.name), folder / job.name, record) for record, folder in (v1, v2))
    outputs = [_outputs(Path(record.step(job.name).folder)) for record, _ in (v1, v2)]
    differences = []
    if job.processes != len(new):
        differences.append(f"v1 starts {job.processes} processes, azure-ai-ml {len(new)}")
    for rank in sorted(old.keys() | new.keys()):
        before, after = old.get(rank, {}), new.get(rank, {})
        for what in _differing(before, after):
            values = f"{before.get(what)!r} with v1, {after.get(what)!r} with azure-ai-ml"
            differences.append(f"rank {rank}: {what} is {values}")
    for name in _differing(*outputs):
        is_in_both = all(name in side for side in outputs)
        differences.append(f"{name}: {'different' if is_in_both else 'on one side only'}")
    variables = len(next(iter(new.values()), {})) - 2
    return Comparison(job.name, len(new), variables, len(outputs[1]), tuple(differences))


def _differing(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    return sorted(key for key in old.keys() | new.keys() if old.get(key) != new.get(key))


def _ranks(step: StepRecord, folder: Path, run: RunRecord) -> dict[int, dict[str, Any]]:
    """Return the arguments, the variables and the exit code of each rank."""
    found: dict[int, dict[str, Any]] = {rank.rank: {"exit code": rank.exit_code} for rank in step.ranks}
    for file in folder.iterdir():
        given = json.loads(file.read_text())
        variables: Mapping[str, str] = given["variables"]
        rank = next((int(variables[name]) for name in _RANKS if name in variables), 0)
        found.setdefault(rank, {})["arguments"] = [_same(word, run) for word in given["arguments"]]
        found[rank] |= {name: _same(value, run) for name, value in variables.items() if not _OWN.match(name)}
    return found


def _same(text: str, run: RunRecord) -> str:
    """Return a text without the parts that differ between two runs: the run's folder and name, addresses and ports."""
    return _ADDRESS.sub("ADDRESS", text.replace(run.folder, "RUN").replace(run.id, "RUN"))


def _outputs(folder: Path) -> dict[str, str]:
    """Return the digests of the files that a step has written."""
    files = (path for name in ("outputs", "named-outputs") for path in (folder / name).rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): digest.of_path(path) for path in files}
