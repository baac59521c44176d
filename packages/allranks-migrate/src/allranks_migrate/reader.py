"""Read the pipeline that a v1 script describes."""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from allranks.errors import InputError, Problem
from allranks.sdk.paths import shown
from allranks_migrate import constructs, steps
from allranks_migrate.context import Context, as_list, to_name, unique
from allranks_migrate.evaluation import Script
from allranks_migrate.jobs import Environment, Input, Job, Output, Pipeline
from allranks_migrate.operations import Made
from allranks_migrate.ports import READS, input_data, output_name


def read(script: Script, folder: Path) -> tuple[Pipeline, tuple[Problem, ...]]:
    """Return the pipeline of a script, and the findings for a person to check. folder: the folder to write

    Raise InputError if the script describes no job, with the constructs of v1 that it has instead.
    """
    context = Context(script, script.path.absolute().parent, folder)
    objects = _jobs(script)
    for made in objects:
        context.jobs[id(made)] = unique(_name(made, script), context.jobs.values())
    for made in objects:
        for root in _written(made):
            context.written.setdefault(id(root), (context.jobs[id(made)], output_name(root, context)))
    jobs = [job for made in objects if (job := steps.read(made, context)) is not None]
    for made in script.made:
        if made.kind in constructs.MISSING:
            context.report(made.line, made.kind, *constructs.MISSING[made.kind])
        for name, fix in constructs.SUBMITTED.items() if made.kind == "submit" else ():
            if made.get(name) is not None:
                context.report(made.line, f"{name} of submit", "it is not in the pipeline", fix)
    if not jobs:
        kinds = ", ".join(dict.fromkeys(made.kind for made in script.made if made.kind in constructs.MISSING))
        found = f"it has no job that can be migrated, but {kinds}" if kinds else "it describes no job of SDK v1"
        expected = "ScriptRunConfig, an Estimator, HyperDriveConfig, or a Pipeline with steps"
        raise InputError(Problem(shown(script.path), found, expected), *context.findings())
    experiments = [made.get("name", 1) for made in script.made if made.kind == "Experiment"]
    experiment = next((name for name in experiments if isinstance(name, str)), "")
    header = tuple(text for line, text in script.comments if line < script.start)
    ordered = _in_order(_after(_with_own_environments(jobs), context))
    return Pipeline(tuple(_add_comments(ordered, script)), context.parameters, experiment, header), context.findings()


def _jobs(script: Script) -> list[Made]:
    """Return the objects that are jobs, without those that are a part of another job."""
    parts = {id(part) for made in script.made for part in (steps.inner(made), made.get("hyperdrive_config"))}
    return [made for made in script.made if made.kind in constructs.JOBS and id(made) not in parts]


def _written(made: Made) -> Iterator[Made]:
    """Yield the objects that a step writes to: its outputs, and its arguments that are not among its inputs."""
    made = steps.with_inner(made)
    for key in ("outputs", "output"):
        yield from (input_data(port)[0] for port in as_list(made.get(key)) if isinstance(port, Made))
    read = {id(input_data(port)[0]) for port in as_list(made.get("inputs")) if isinstance(port, Made)}
    for port in as_list(made.get("arguments")):
        if isinstance(port, Made) and port.kind not in READS and id(root := input_data(port)[0]) not in read:
            yield from [root] * (root.kind in constructs.PORTS)


def _name(made: Made, script: Script) -> str:
    """Return the name of a job: its own, or that of its script."""
    job = steps.inner(made)
    own = made.get("name") if made.kind in constructs.STEPS else None
    if isinstance(own, str):
        return to_name(own, "train")
    if isinstance(job, Made):
        return _name(job, script)
    file = made.get("script") or made.get("script_name") or made.get("entry_script")
    return to_name(Path(file).stem if isinstance(file, str) else script.variables.get(id(made), "train"), "train")


def _with_own_environments(jobs: Sequence[Job]) -> Iterator[Job]:
    """Yield the jobs with different names for environments that differ."""
    known: dict[str, Environment] = {}
    for job in jobs:
        own = job.environment
        name = next((name for name, each in known.items() if each == own), "") or unique(own.name, known)
        known[name] = own
        yield replace(job, environment=replace(own, name=name))


def _add_comments(jobs: Sequence[Job], script: Script) -> Iterator[Job]:
    """Yield the jobs with the comments that are above them in the script, and the last one with the rest."""
    by_place = sorted(jobs, key=lambda each: each.line)
    comments: dict[str, list[str]] = {job.name: [] for job in jobs}
    for line, text in script.comments:
        if line >= script.start:
            below = next((job for job in by_place if line <= job.line), by_place[-1])
            comments[below.name].append(text)
    yield from (replace(job, comments=tuple(comments[job.name])) for job in jobs)


def _after(jobs: Iterable[Job], context: Context) -> list[Job]:
    """Return the jobs with an input for each step that they run after: azure-ai-ml orders steps by data only."""
    calls = [made for made in context.script.made if made.kind == "run_after"]
    pairs = [(value, call.receiver) for call in calls for value in call.values]
    for made in context.script.made:
        if made.kind == "StepSequence":
            groups = [as_list(each) for each in as_list(made.get("steps", 0))]
            pairs += [pair for group in itertools.pairwise(groups) for pair in itertools.product(*group)]
    by_name = {job.name: job for job in jobs}
    for pair in pairs:
        before, after = (by_name.get(context.jobs.get(id(each), "")) for each in pair)
        if not before or not after or any((port.source or ("",))[0] == before.name for port in after.inputs.values()):
            continue
        by_name[before.name] = replace(before, outputs={**before.outputs, "done": Output()})
        port = Input("uri_folder", source=(before.name, "done"), optional=True)
        by_name[after.name] = replace(after, inputs={**after.inputs, f"after_{before.name}": port})
    return list(by_name.values())


def _in_order(jobs: Sequence[Job]) -> list[Job]:
    """Sort the jobs so that each comes after the jobs whose outputs it uses."""
    done, waiting = dict[str, Job](), list(jobs)
    while waiting:
        sources = {job.name: {port.source[0] for port in job.inputs.values() if port.source} for job in waiting}
        for job in [each for each in waiting if sources[each.name] <= done.keys()] or waiting[:1]:
            done[job.name] = job
            waiting.remove(job)
    return list(done.values())
