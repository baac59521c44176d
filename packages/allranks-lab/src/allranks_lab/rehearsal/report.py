"""The report of a rehearsal. The workspace saves one for each version of a training's code and environment."""

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from statistics import median

from jinja2 import ChoiceLoader, PackageLoader

from allranks.history.nested import in_every_iteration
from allranks.history.page import chart, html_page
from allranks.history.records import Point
from allranks.plan import digest
from allranks.plan.graph import Plan, Step
from allranks.plan.walk import steps
from allranks.text import NOTHING, number, when
from allranks.workspace import Workspace, write_file
from allranks_lab.rehearsal.comparison import STARTED_AGAIN, Training

FOLDER = "rehearsals"
"""The folder of the reports in the workspace."""


ELASTIC_LOSS = 1e-4
"""Permitted difference of the loss if fewer ranks make some steps, because they add gradients in another order."""


@dataclass(frozen=True)
class Output:
    """The comparison of the weights in an output of a training. differs: the first file and tensor that differ"""

    step: str
    name: str
    files: int
    differs: str = ""


@dataclass(frozen=True)
class Report:
    """The result of a rehearsal.

    untouched, evicted: the ids of the two runs
    status:    the status of the run with evictions
    evictions: the number of evictions, of `asked`
    code:      by training, a digest of its code, command and environment
    outputs:   the outputs that contain weights in both runs
    page:      absolute path of the HTML page
    """

    name: str
    untouched: str
    evicted: str
    status: str
    evictions: int
    asked: int
    seed: int
    elastic: bool
    code: Mapping[str, str]
    trainings: tuple[Training, ...]
    outputs: tuple[Output, ...] = ()
    page: str = ""
    created: float = field(default_factory=time.time)

    @property
    def problems(self) -> list[str]:
        """The reasons why the training does not survive evictions; empty if it does."""
        return list(_problems(self))

    @property
    def summary(self) -> str:
        """The outcome in one line, as in the tag of a submitted job."""
        outcome = "failed" if self.problems else "passed"
        return f"{outcome}: {self.evictions} evictions, seed {self.seed}{', elastic' if self.elastic else ''}"


def _problems(report: Report) -> Iterator[str]:
    if report.status != "Completed":
        yield f"run {report.evicted} with evictions is {report.status}"
    if report.evictions < report.asked:
        yield f"only {report.evictions} of {report.asked} evictions happened"
    for training in report.trainings:
        where = f"{training.name}: "
        if training.before_evictions:
            yield f"{where}it is not repeatable: its results differ before the first eviction. Set its seeds"
        if _never_resumed(training):
            yield f"{where}{STARTED_AGAIN} after each eviction: it saves no checkpoint, or loads none"
        if training.extra_steps:
            how = "more" if training.extra_steps > 0 else "fewer"
            yield f"{where}{abs(training.extra_steps)} training steps {how} than without evictions"
        if training.repeated or training.missing:
            yield f"{where}within an epoch, {training.repeated} samples are seen twice and {training.missing} never"
        if report.elastic:
            if (loss := training.largest_difference or 0.0) > ELASTIC_LOSS:
                yield f"{where}the loss differs by {number(loss)}, more than {ELASTIC_LOSS:g}"
        elif training.weights_equal is False:
            since = f", from training step {training.weights_from} on" if training.weights_from else ""
            yield f"{where}the final weights differ{since}"
        elif training.loss_from is not None and training.weights_equal is None:
            yield f"{where}the loss differs, from training step {training.loss_from} on"
    for output in report.outputs:
        if output.differs and not report.elastic:
            yield f"{output.step}: output {output.name} differs: {output.differs}"


def _never_resumed(training: Training) -> bool:
    """Return whether it always started from the beginning, also late in the training."""
    resumptions = training.resumptions
    reached = max((each.reached for each in resumptions), default=0)
    return 2 * reached > training.steps and not any(each.resumed for each in resumptions)


def advice(training: Training) -> Iterator[str]:
    """Yield advice for a training that does not survive evictions: the state to save and load, one sentence each."""
    resumed = [each for each in training.resumptions if each.resumed]
    lost = {text: count for text, count in training.lost.items() if not (resumed and STARTED_AGAIN in text)}
    count = len(training.resumptions)
    for text, times in lost.items():
        yield f"{text} ({times} of {count} resumptions)" if times < count else text
    if not lost and training.weights_from is not None and not training.before_evictions:
        yield (
            "nothing that is recorded was lost. With more than two ranks, DistributedDataParallel adds gradients in "
            "another order in the first step after its start, so that results are equal up to rounding"
        )


def facts(report: Report, training: Training) -> list[tuple[str, str]]:
    """Return the figures of a training and the state of its outputs, each with its name."""
    seconds = [each.seconds for each in training.resumptions]
    samples = "not known: they are not read by torch's DataLoader"
    if training.repeated is not None:
        samples = f"{training.repeated} seen twice, {training.missing} never, within an epoch"
    loss = training.largest_difference
    equal = {True: "equal bit for bit", False: f"differ from training step {training.weights_from} on", None: NOTHING}
    outputs = [output for output in report.outputs if output.step == training.name]
    return [
        ("training steps", f"{training.steps}, of which {training.redone} were made again"),
        ("restarts", str(len(training.resumptions))),
        (
            "eviction to next step",
            f"{median(seconds):.1f} s (median), {max(seconds):.1f} s at most" if seconds else NOTHING,
        ),
        ("useful time", f"{100 * training.useful:.0f} %"),
        ("samples", samples),
        ("largest difference in loss", NOTHING if loss is None else number(loss)),
        ("final weights", equal[training.weights_equal]),
        *((f"output {each.name}", f"differs: {each.differs}" if each.differs else equal[True]) for each in outputs),
    ]


def write_page(report: Report, path: Path) -> None:
    """Write the HTML page: both loss curves, and the state lost at each eviction. Raise OSError on failure."""
    environment = html_page.templates("allranks.history.page", lambda value: value)
    loaders = environment.loader, PackageLoader("allranks_lab.rehearsal", "templates")
    environment.loader = ChoiceLoader([loader for loader in loaders if loader is not None])
    environment.globals.update(chart_size=chart, number=number, when=when, facts=facts, NOTHING=NOTHING)
    charts = [_chart(training) for training in report.trainings if any(training.curves.values())]
    trainings = [(training, list(advice(training)) if report.problems else []) for training in report.trainings]
    values = {"report": report, "trainings": trainings, "charts": charts}
    write_file(path, html_page.render(environment, "rehearsal.html", "style.css", ["tooltip.js"], **values))


def _chart(training: Training) -> chart.Chart:
    curves = [
        chart.Curve(name, "", [Point(step, value, 0.0) for step, value in points])
        for name, points in training.curves.items()
        if points
    ]
    return chart.make_chart("loss", training.name, curves)


def code_of(plan: Plan, trainings: Sequence[str]) -> dict[str, str]:
    """Return for each training step a digest of its code, command and environment."""
    by_path = {in_every_iteration(path): step for path, step in steps(plan.graph)}
    found = {name: by_path.get(in_every_iteration(name)) for name in trainings}
    return {name: _digest(step) for name, step in found.items() if step is not None}


def _digest(step: Step) -> str:
    environment = [str(getattr(step.environment, each.name)) for each in fields(step.environment) if each.compare]
    return digest.of_text(step.code.digest if step.code else "", step.command, *environment)


def save(report: Report, workspace: Workspace) -> None:
    """Save a report as the latest one of its code. Raise OSError on failure."""
    folder = workspace.root / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    name = digest.of_text(*(part for item in sorted(report.code.items()) for part in item))
    text = json.dumps({**asdict(report), "summary": report.summary, "passed": not report.problems})
    write_file(folder / f"{name[:16]}.json", text)
