"""Rehearse evictions: run a pipeline without any, then its trainings with some at random steps, and compare."""

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from allranks.checks.plan.settings import saves_checkpoints
from allranks.contract.variables import ELASTIC_INSTANCES, elastic_instances
from allranks.errors import InputError, Problem
from allranks.history.records import RunRecord, Status
from allranks.local.options import Options
from allranks.local.selection import Selection
from allranks.plan.graph import Plan
from allranks.plan.walk import steps
from allranks.workspace import Workspace
from allranks_lab.faults import RECORD
from allranks_lab.rehearsal import outputs, report
from allranks_lab.rehearsal.comparison import compare
from allranks_lab.rehearsal.report import Output, Report
from allranks_lab.rehearsal.steps import Attempt, load

GRACE = 30.0
"""Seconds of an eviction with a grace period, as on Azure ML. The others have none."""

Run = Callable[[Options, RunRecord | None], RunRecord]
"""Runs the plan with options, and with results of an earlier run."""


def rehearse(
    plan: Plan, workspace: Workspace, options: Options, run: Run, *, evictions: int, seed: int, elastic: bool
) -> Report:
    """Run a plan without evictions, and its trainings with evictions. Return and save the report, and write its page.

    elastic: whether evicted instances come back seconds later, so that an elastic step first continues on fewer

    Raise InputError if the plan has no training, or none that saves checkpoints.
    """
    if not any(saves_checkpoints(step) for _, step in steps(plan.graph)):
        found = "no step has checkpoints among its inputs, outputs, command and code"
        fix = "save checkpoints to an output, and load them at the start; see docs/how-to/checkpoints.md"
        raise InputError(Problem(plan.name, found, "a training that resumes after an eviction", fix))
    minimums = _minimums(plan) if elastic else {}
    if elastic and not minimums:
        found = f"no step sets {ELASTIC_INSTANCES}"
        raise InputError(Problem("--elastic", found, "an elastic training", "see docs/how-to/checkpoints.md"))
    untouched = run(replace(options, force_rerun=True, faults=[RECORD]), None)
    if untouched.status is not Status.COMPLETED:
        found = f"run {untouched.id}, without evictions, is {untouched.status}"
        raise InputError(Problem(plan.name, found, "a pipeline that completes", f"allranks why {untouched.id}"))
    trainings = _trainings(untouched) or _trainings(untouched, reported=True)
    moments = [(name, at) for name, attempts in trainings.items() for at in range(1, attempts[-1].last)]
    if len(moments) < evictions:
        found = (
            f"{len(moments)} training steps in run {untouched.id}" if trainings else "no step has made a training step"
        )
        fix = "use fewer evictions, or train longer" if trainings else "see docs/rehearsals.md of allranks-lab"
        raise InputError(Problem(f"--evictions {evictions}", found, f"at least {evictions} training steps", fix))
    faults = [RECORD, *_faults(moments, untouched, evictions, seed, minimums)]
    # A step in a loop cannot be selected: the whole pipeline runs again.
    only = () if any("[" in name for name in trainings) else tuple(trainings)
    selection = Selection(only=only)
    evicted = run(replace(options, force_rerun=not only, faults=faults, selection=selection), untouched)
    return _report(plan, workspace, trainings, untouched, evicted, evictions, seed, elastic)


def _trainings(run: RunRecord, *, reported: bool = False) -> dict[str, list[Attempt]]:
    found = {step.name: load(step.folder, reported=reported) for step in run.steps if step.kind == "command"}
    return {name: attempts for name, attempts in found.items() if attempts}


def _minimums(plan: Plan) -> dict[str, int]:
    """Return the minimum number of instances of each elastic step."""
    found = {}
    for path, step in steps(plan.graph):
        variables = {name: value for name, value in step.environment_variables.items() if isinstance(value, str)}
        if limits := elastic_instances(variables):
            found[path] = min(limits[0], step.instance_count)
    return found


def _faults(
    moments: Sequence[tuple[str, int]], run: RunRecord, evictions: int, seed: int, minimums: Mapping[str, int]
) -> Iterator[str]:
    generator = random.Random(seed)
    for name, at in sorted(generator.sample(moments, evictions)):
        # Of an elastic step, an instance that it has also while others are away.
        instance = generator.randrange(minimums.get(name, run.step(name).instance_count))
        grace = generator.choice((0.0, GRACE))
        back = f",back={generator.randint(2, 10)}s" if minimums else ""
        yield f"evict:node={name},instance={instance},step={at},grace={grace:g}s{back}"


def _report(
    plan: Plan,
    workspace: Workspace,
    trainings: dict[str, list[Attempt]],
    untouched: RunRecord,
    evicted: RunRecord,
    asked: int,
    seed: int,
    elastic: bool,
) -> Report:
    compared = []
    for name, attempts in trainings.items():
        step = evicted.find(name)
        made = load(step.folder, reported=not attempts[0].ranks[0].weights) if step else []
        if made:
            times = {fault.attempt: fault.time for fault in evicted.faults if fault.node == name}
            compared.append(compare(name, attempts, made, times))
    path = Path(evicted.folder) / "rehearsal.html"
    result = Report(
        plan.display_name or plan.name,
        untouched.id,
        evicted.id,
        str(evicted.status),
        len(evicted.faults),
        asked,
        seed,
        elastic,
        report.code_of(plan, list(trainings)),
        tuple(compared),
        tuple(_outputs(trainings, untouched, evicted)),
        str(path),
    )
    report.write_page(result, path)
    report.save(result, workspace)
    return result


def _outputs(trainings: dict[str, list[Attempt]], untouched: RunRecord, evicted: RunRecord) -> Iterator[Output]:
    for name in trainings:
        second = evicted.find(name)
        after = {output.name: output for output in second.outputs} if second else {}
        for output in untouched.step(name).outputs:
            if output.name in after:
                files, differs = outputs.compare(Path(output.path), Path(after[output.name].path))
                if files or differs:
                    yield Output(name, output.name, files, differs)
