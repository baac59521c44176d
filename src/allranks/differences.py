"""The differences between two runs: in what the results of each step depend on, then in the results.

A run of this machine records the code, data, packages and interpreter of its steps. Of a job that was submitted to
Azure ML, only the plan, the states, the outputs and the curves are known. Facts that only one of the runs records are
not compared.
"""

import filecmp
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import dropwhile, islice
from pathlib import Path

from allranks.contract.templating import wire
from allranks.errors import InputError, Problem
from allranks.history import stored
from allranks.history.curves import best
from allranks.history.formatting import cause
from allranks.history.nested import in_every_iteration, node_at
from allranks.history.recorder import packages_of
from allranks.history.records import RankRecord, RunRecord, Status, StepRecord
from allranks.history.store import Store
from allranks.plan import codec, file_tree, walk
from allranks.plan.graph import Plan, Step
from allranks.secrets import MASK
from allranks.text import number
from allranks.workspace import Workspace

LONGEST_FILE = 1 << 20
"""Maximum bytes of a file in which the first differing line is searched for."""


@dataclass(frozen=True)
class Difference:
    """One difference.

    step:   the path of the step, the same in both runs
    what:   such as ``package numpy``, ``input learning_rate``, ``file train.py`` or ``metric loss``
    before: in the first run; "" if it is missing there
    after:  in the second run
    """

    step: str
    what: str
    before: str
    after: str


@dataclass(frozen=True)
class Comparison:
    """The differences between two runs, by step in the order in which the steps ran.

    causes:  what the results depend on: a difference in an early step may cause those in later steps
    results: states, outputs, curves, ranks and times
    """

    before: str
    after: str
    causes: tuple[Difference, ...]
    results: tuple[Difference, ...]


@dataclass(frozen=True)
class Side:
    """A run with its recorded facts. steps: those of its plan, by path, with a star for each iteration"""

    run: RunRecord
    plan: Plan
    packages: Mapping[str, Mapping[str, str]]
    steps: Mapping[str, Step]
    sources: Mapping[str, str] = field(default_factory=dict)

    def step(self, path: str) -> Step | None:
        """Return the step of the plan at a path of the run."""
        return self.steps.get(in_every_iteration(path))


def side(workspace: Workspace, run: RunRecord) -> Side:
    """Return a run with its plan, code and packages. Raise InputError if its plan cannot be read."""
    with Store(workspace.database, reads=True) as store:
        plan = codec.loads(store.plan(run.id))
    steps = {in_every_iteration(path): step for path, step in walk.steps(plan.graph)}
    sources = {output.path: f"{output.name} of {step.name}" for step in run.steps for output in step.outputs}
    return Side(run, plan, packages_of(run), steps, sources)


def compare(before: Side, after: Side) -> Comparison:
    """Compare two runs, step by step."""
    paths = [step.name for step in before.run.steps]
    paths += [step.name for step in after.run.steps if step.name not in set(paths)]
    return Comparison(
        before.run.id,
        after.run.id,
        tuple(found for path in paths for found in causes(before, after, path)),
        tuple(found for path in paths for found in _results(before.run.find(path), after.run.find(path))),
    )


_LAST = ("environment", "interpreter path")
"""Differences to list last: an environment that declares other packages differs as a whole, and is in another folder.
"""


def causes(before: Side, after: Side, path: str, *, outputs: bool = False) -> Iterator[Difference]:
    """Yield the differences in what the result of a step depends on.

    outputs: whether this includes the outputs of earlier steps
    """
    records = before.run.find(path), after.run.find(path)
    planned = before.step(path), after.step(path)
    if None in planned or None in records:
        states = ["" if record is None else record.kind for record in records]
        if states[0] != states[1]:
            yield Difference(path, "node", *states)
        return
    facts = [_facts(run, path, outputs) for run in (before, after)]
    yield from (Difference(path, f"file {name}", *texts) for name, *texts in _code(*planned))
    shared = facts[0].keys() & facts[1].keys()

    def order(what: str) -> tuple[bool, bool]:
        return what in _LAST, what.startswith("package ") and what not in shared

    for what in sorted(dict.fromkeys((*facts[0], *facts[1])), key=order):
        texts = [found.get(what, "") for found in facts]
        if texts[0] != texts[1] and not _unknown(what, *facts):
            yield Difference(path, what, *texts)


def _facts(run: Side, path: str, outputs: bool) -> dict[str, str]:
    """Return what the result of a step depends on, except its code, in the order of importance."""
    record, step = run.run.step(path), run.step(path)
    assert step is not None
    interpreter, _, path_of_interpreter = record.interpreter.partition(", ")
    settings = {
        "distribution": step.distribution.type,
        **{key: wire(value) for key, value in asdict(step.distribution).items() if isinstance(value, (str, int))},
        "instance_count": str(step.instance_count),
        "instance_type": step.instance_type,
        "shm_size": str(step.shm_size),
        **{f"parallel {key}": str(value) for key, value in (asdict(step.parallel) if step.parallel else {}).items()},
    }
    inputs = {name: run.sources.get(value, value) for name, value in record.inputs.items()}
    # The path of an earlier step's output is not a difference.
    data = {name: found for name, found in record.data.items() if outputs or inputs[name] == record.inputs[name]}
    variables = {f"variable {name}": str(value) for name, value in step.environment_variables.items()}
    return {
        "command": step.command,
        **({"interpreter": interpreter} if interpreter else {}),
        **{f"input {name}": value for name, value in inputs.items() if name not in data},
        **{f"data of input {name}": f"{inputs[name]} ({found[:8]})" for name, found in data.items()},
        **settings,
        **variables,
        **{f"package {name}": version for name, version in run.packages.get(record.interpreter, {}).items()},
        "environment": str(step.environment),
        **({"interpreter path": path_of_interpreter} if interpreter else {}),
    }


def _unknown(what: str, *facts: Mapping[str, str]) -> bool:
    """Return whether one of the runs has no record of this fact."""
    if any(found.get(what) == MASK for found in facts):
        return True
    kind = what.split()[0]
    if kind not in ("interpreter", "package", "data"):
        return False
    return not all(any(known.startswith(kind) for known in found) for found in facts)


def _code(before: Step | None, after: Step | None) -> Iterator[tuple[str, str, str]]:
    """Yield each differing file of a step's code, with the first differing line."""
    codes = [step.code if step else None for step in (before, after)]
    if codes[0] == codes[1] or (codes[0] and codes[1] and codes[0].digest == codes[1].digest):
        return
    files = [_files(code.folder) if code else {} for code in codes]
    for name in sorted({*files[0], *files[1]}):
        first, second = (found.get(name) for found in files)
        if first is None or second is None:
            yield name, "" if first is None else "a file", "" if second is None else "a file"
        elif not filecmp.cmp(first, second, shallow=False):
            yield name, *_lines(first, second)


def _files(folder: str) -> dict[str, Path]:
    return {entry.name: entry.path for entry in file_tree.entries(Path(folder)) if entry.kind == file_tree.FILE}


def _lines(first: Path, second: Path) -> tuple[str, str]:
    """Return the first line of each file that differs, or the sizes of files without lines."""
    sizes = [path.stat().st_size for path in (first, second)]
    try:
        if max(sizes) > LONGEST_FILE:
            raise ValueError
        texts = [path.read_text(encoding="utf-8").splitlines() for path in (first, second)]
    except ValueError:  # UnicodeDecodeError is one
        return f"{sizes[0]} bytes", f"{sizes[1]} bytes"
    same = next((at for at, (a, b) in enumerate(zip(*texts, strict=False)) if a != b), min(map(len, texts)))
    shown = [f"line {same + 1}: {text[same].strip()}" if same < len(text) else f"{len(text)} lines" for text in texts]
    return shown[0], shown[1]


def _results(before: StepRecord | None, after: StepRecord | None) -> Iterator[Difference]:
    """Yield the differences in the results of a step."""
    if before is None or after is None:
        return
    pair = before, after
    yield from _differing(before.name, [_ends(record) for record in pair])
    for name in dict.fromkeys((*before.metrics, *after.metrics)):
        yield from _curves(before, after, name)
    outputs = [{f"output {each.name}": each.value or each.digest[:8] for each in record.outputs} for record in pair]
    yield from _differing(before.name, outputs)
    if before.kind == "command" and before.reused_from is None and after.reused_from is None:
        yield from _times(before, after)


def _differing(step: str, facts: Sequence[Mapping[str, str]]) -> Iterator[Difference]:
    for what in dict.fromkeys((*facts[0], *facts[1])):
        texts = [found.get(what, "") for found in facts]
        if texts[0] != texts[1]:
            yield Difference(step, what, *texts)


def _ends(step: StepRecord) -> dict[str, str]:
    return {
        "state": str(step.status),
        **({"reason": cause(step.verdict)} if step.verdict else {}),
        **{f"rank {rank.rank}": _end(rank) for rank in step.ranks if step.status is not Status.COMPLETED},
    }


def _end(rank: RankRecord) -> str:
    return rank.signal or (str(rank.status) if rank.exit_code is None else f"exit code {rank.exit_code}")


def _curves(before: StepRecord, after: StepRecord, name: str) -> Iterator[Difference]:
    """Yield the final and the best value of a metric where they differ. If neither does, yield the first training step
    at which the curves differ."""
    curves = [step.metrics.get(name, []) for step in (before, after)]
    finals = [number(points[-1].value) if points else "" for points in curves]
    tops = [best(name, points) for points in curves]
    if all(top is None or top is points[-1] for top, points in zip(tops, curves, strict=True)):
        tops = [None, None]
    bests = [f"{number(top.value)} at step {top.step}" if top else "" for top in tops]
    values_of_both = [{f"metric {name}": final, f"best {name}": top} for final, top in zip(finals, bests, strict=True)]
    if values_of_both[0] != values_of_both[1]:
        yield from _differing(before.name, values_of_both)
        return
    points = [{point.step: point.value for point in step.metrics.get(name, ())} for step in (before, after)]
    for at in sorted({*points[0], *points[1]}):
        values = [found.get(at) for found in points]
        # NaN equals NaN here.
        if values[0] != values[1] and not all(value is not None and value != value for value in values):
            texts = ["" if value is None else f"{value!r} at step {at}" for value in values]
            yield Difference(before.name, f"metric {name}", *texts)
            return


def _times(before: StepRecord, after: StepRecord) -> Iterator[Difference]:
    times = [_seconds(step) for step in (before, after)]
    if all(times):
        yield Difference(before.name, "time", *(f"{seconds:.1f} s" for seconds in times if seconds))
    ranks = [{rank.rank: _seconds(rank) for rank in step.ranks} for step in (before, after)]
    for rank in sorted({*ranks[0]} & {*ranks[1]}):
        first, second = ranks[0][rank], ranks[1][rank]
        if first and second and max(first, second) > SLOWER * min(first, second) + 1:
            yield Difference(before.name, f"time of rank {rank}", f"{first:.1f} s", f"{second:.1f} s")


SLOWER = 1.5
"""The ratio above which the times of a rank are shown, apart from a second that a start may take."""


def _seconds(record: StepRecord | RankRecord) -> float | None:
    return None if record.started is None or record.ended is None else record.ended - record.started


@dataclass(frozen=True)
class Reuse:
    """Why a step's earlier result was reused, or why the step ran.

    reason:  a sentence
    earlier: the run whose result was reused, or with which the step was compared; "" if there is none
    causes:  the differences between the two
    """

    step: str
    reason: str
    earlier: str = ""
    causes: tuple[Difference, ...] = ()


def reuse(workspace: Workspace, run: RunRecord, path: str) -> Reuse:
    """Return why a step of a run was or was not reused. Raise InputError if the run has no such step."""
    path = node_at(run, path).path
    record = run.find(path)
    if record is None or record.kind != "command":
        return Reuse(path, "it contains steps, of which each is reused or not: name one of them")
    if record.reused_from:
        reason = "its code, command, inputs, layout and packages were those of an earlier run, whose result was reused"
        return Reuse(path, reason, record.reused_from)
    this = side(workspace, run)
    step = this.step(path)
    if step is not None and not step.deterministic:
        return Reuse(path, "it ran: its component is not deterministic, so its results are never reused")
    for other in _earlier(workspace, run):
        found = None if other.submitted else other.find(path)
        if found is not None and found.status is Status.COMPLETED:
            differing = tuple(causes(side(workspace, other), this, path, outputs=True))
            reason = (
                "it ran, although nothing that is recorded has changed: "
                "with --force-rerun, --from or --only, or its outputs were changed or gone"
            )
            if differing:
                reason = "it ran: what its result depends on has changed since the last run in which it completed"
            elif this.plan.force_rerun:
                reason = "it ran: the pipeline sets force_rerun"
            return Reuse(path, reason, other.id, differing)
    return Reuse(path, "it ran: no earlier run of this pipeline has completed it")


def previous(workspace: Workspace, run: RunRecord) -> str:
    """Return the id of the run before this one of the same pipeline. Raise InputError if there is none."""
    found = next((other.id for other in _earlier(workspace, run, steps=False)), "")
    if not found:
        text, fix = f"it is the first run of pipeline {run.name}", "name two runs: allranks diff RUN OTHER"
        raise InputError(Problem(f"run {run.id}", text, "an earlier run to compare it with", fix))
    return found


def _earlier(workspace: Workspace, run: RunRecord, *, steps: bool = True) -> Iterable[RunRecord]:
    """Yield the earlier runs of the same pipeline, the newest first."""
    runs = stored.runs(workspace, steps=steps, unreadable=lambda *_: None)
    later = dropwhile(lambda other: other.id != run.id, runs)
    return (other for other in islice(later, 1, None) if other.name == run.name)
