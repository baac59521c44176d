"""Run one step of a past run again, with its recorded inputs and variables. No workspace records it."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

from allranks.api import jobs, retry
from allranks.api.engine_process import start
from allranks.api.run import Run, started
from allranks.azure.workspace import WorkspaceOptions
from allranks.environments.realise import HOST
from allranks.errors import InputError, Level, Problem
from allranks.local import engine, realised, requirements
from allranks.local.data import inputs
from allranks.local.options import AUTO, Options
from allranks.local.scope import text_of
from allranks.plan import digest, ports, values
from allranks.plan.graph import Graph, Plan, Step
from allranks.plan.walk import steps, without_labels
from allranks.runs import history, selection
from allranks.runs.nested import node_at
from allranks.runs.records import OutputRecord, RunRecord, StepRecord
from allranks.runs.workspace import Workspace
from allranks.secrets import MASK

_folders: list[tempfile.TemporaryDirectory[str]] = []
"""The workspaces of the replays that this process has started. They are removed when it ends."""


def replay(run: Run | str, step: str = "", *, latest_code: bool = False, folder: Path | str | None = None) -> Run:
    """Start one step of a past run again, with its recorded inputs and variables, and return that as a run.

    No workspace records it: its files are removed when this process ends. A step that has failed fails with the same
    exception: ``allranks.replay("latest", "train").wait()`` raises RunFailedError.

    run:         a run, its id, the first characters of it, the name of its job, or ``latest``; or ``azure:JOB`` for
                 any job of the Azure ML workspace that the environment or a config.json names
    step:        the path of a step, such as ``train`` or ``loop[2].train``; ``RUN/STEP`` is the same
    latest_code: whether to read the pipeline's file again, for the step's code and command of today
    folder:      the workspace; default: the `.allranks` folder of the current folder or a parent

    Raise InputError if there is no such run or step, or its code or inputs are gone; AzureError if Azure ML fails.
    """
    identity = run.id if isinstance(run, Run) else run
    _folders.append(temporary_folder())
    workspace = Workspace(Path(_folders[-1].name))
    plan, options = plan_of(identity, step, Workspace.at(folder), workspace.root, latest_code=latest_code)
    identity, process = start(plan, workspace, options)
    return started(identity, process, workspace)


def temporary_folder() -> tempfile.TemporaryDirectory[str]:
    """Return a folder for the workspace of a replay."""
    return tempfile.TemporaryDirectory(prefix="allranks-replay-")


def plan_of(
    identity: str,
    path: str,
    workspace: Workspace,
    folder: Path,
    *,
    latest_code: bool = False,
    azure: WorkspaceOptions | None = None,
    warn: jobs.Warn = bool,
    report: jobs.Report = jobs.silent,
) -> tuple[Plan, Options]:
    """Return the plan of one step of a run as it ran, and the options to run it with. See `replay`.

    folder: for what the step needs of a run on Azure ML
    azure:  the workspace of a job that was submitted from elsewhere
    """
    if not path:
        identity, _, path = identity.partition("/")
    try:
        place, run = history.find(workspace, identity)
        stored = engine.stored_plan(run, place)
    except InputError:
        if not identity.startswith(selection.AZURE):
            raise
        from allranks.azure import job_assets

        place, job = Workspace(folder / "job"), identity.removeprefix(selection.AZURE)
        run, stored = job_assets.read(job, path, azure or WorkspaceOptions(), place)
    record = run.steps[0] if not path and len(run.steps) == 1 else node_at(run, path).record
    where = f"step {path} of run {run.id}"
    if record is None or record.kind != "command":
        raise InputError(Problem(where, "it is not a step with a command", "a step", f"see: allranks show {run.id}"))
    if record.started is None and run.submitted is None:
        raise InputError(Problem(where, "it has not run", "a step that has run", f"see: allranks show {run.id}"))
    options = Options(AUTO if run.submitted else run.instances, track=False, settings=run.settings)
    if latest_code:
        stored, _ = retry.latest_plan(run, {}, place, options, warn, report)
    own = without_labels(record.name)
    step = next((each for name, each in steps(stored.graph) if without_labels(name) == own), None)
    if step is None:
        raise InputError(Problem(where, "the pipeline no longer has this step", "", "omit --latest-code"))
    if run.submitted is not None:
        step, stored = _downloaded(run, record, step, stored, folder)
    alone = replace(stored, graph=Graph((_as_it_ran(step, record, run, stored, where, warn),)))
    alone, differences = realised.with_interpreters(alone, HOST, report)
    if problems := requirements.of_machine(alone):
        raise InputError(*problems)
    warn(tuple(differences))
    return alone, options


def _downloaded(run: RunRecord, record: StepRecord, step: Step, plan: Plan, folder: Path) -> tuple[Step, Plan]:
    """Return a step and its plan with copies of the data on Azure ML that the step needs. Add the outputs of other
    steps that it needs to the records of those steps."""
    from allranks.azure import job_assets, runs, watch

    if "." in record.name:
        expected = "a step of the pipeline itself"
        raise InputError(Problem(f"step {record.name} of run {run.id}", "it is in a node on Azure ML", expected))
    needed = {each for value in step.values() for each in ports.references(value)}
    bound = (port for port in plan.graph.inputs if ports.GraphInput(port.name) in needed)
    data: dict[str, ports.Path] = {}
    with watch.connected(run) as client:
        runs.update(client, run)
        for reference in sorted((each for each in needed if isinstance(each, ports.NodeOutput)), key=str):
            other, name, place = run.step(reference.node), reference.name, folder / "downloaded" / reference.node
            if other.mlflow_run_id is None or not runs.download_output(client, other.mlflow_run_id, name, place):
                found = f"step {reference.node} has not written its output {name}"
                raise InputError(Problem(f"run {run.id}", found, "a step whose inputs exist"))
            kind = next((port.type for port in step.inputs if port.value == reference), "")
            single = _single(next(place.rglob(name)), kind)
            value = single.read_text(encoding="utf-8") if kind in ports.PRIMITIVES else None
            other.outputs.append(OutputRecord(name, kind, str(single), value))
        for port in (*step.inputs, *bound):
            if isinstance(port.value, ports.Path) and port.value.path.startswith("azureml:"):
                path = job_assets.download_data(client, port.value.path, port.type, folder / "data" / port.name)
                data[port.value.path] = ports.Path(path if "://" in path else str(_single(Path(path), port.type)))
    step, plan = inputs.replaced((step, plan), data)
    return step, plan


def _single(folder: Path, kind: str) -> Path:
    files = [each for each in folder.iterdir() if each.is_file()]
    return files[0] if kind in ports.FILE_TYPES and len(files) == 1 else folder


def _as_it_ran(step: Step, record: StepRecord, run: RunRecord, plan: Plan, where: str, warn: jobs.Warn) -> Step:
    """Return the step with its recorded inputs and variables in place of references."""
    if step.code and not Path(step.code.folder).is_dir():
        fix = f"run today's code: allranks replay {run.id} {record.name} --latest-code"
        raise InputError(Problem(where, f"its code {step.code.folder} is gone", "", fix))
    prefix = record.name[: -len(step.name)] if record.name.endswith(step.name) else record.name.rpartition(".")[0] + "."
    around = [run.find(name) for name in (prefix[:-1], prefix[:-1].rpartition("[")[0])] if prefix else []

    def lookup(reference: ports.Reference) -> str | None:
        if isinstance(reference, ports.NodeOutput):
            other = run.find(f"{prefix}{reference.node}")
            outputs = other.outputs if other else ()
            return next((text_of(each) for each in outputs if each.name == reference.name), None)
        if not prefix and (port := plan.graph.input_by_name.get(reference.name)) is not None:
            return values.resolve(port.value, lookup)  # with its secrets
        scopes = [each.inputs for each in (*around[:1], record, *around[1:]) if each is not None]
        return next((scope[reference.name] for scope in scopes if reference.name in scope), None)

    def recorded(port: ports.Input) -> ports.Input:
        text = record.inputs.get(port.name)
        if run.submitted is not None or (text is not None and MASK in text):
            text = values.resolve(port.value, lookup)
        if text is None:
            return replace(port, value=None)
        if port.type in ports.PRIMITIVES:
            return replace(port, value=ports.Literal(text))
        if "://" in text:
            return replace(port, value=ports.Path(text))
        if not Path(text).exists():
            raise InputError(Problem(f"input {port.name} of {where}", f"{text} is gone", "the data of the run"))
        if record.data.get(port.name, (found := digest.of_path(Path(text)))) != found:
            warn((Problem(f"input {port.name} of {where}", f"{text} has changed since", level=Level.WARNING),))
        return replace(port, value=ports.Path(text))

    return replace(
        step,
        name=without_labels(step.name),
        inputs=tuple(map(recorded, step.inputs)),
        outputs=tuple(replace(port, path=None, asset="") for port in step.outputs),
        environment_variables={
            name: values.resolve(value, lookup) or "" for name, value in step.environment_variables.items()
        },
        after=(),
        retries=0,
    )
