"""The report on a workspace: what differed, its steps, and what was compared, as Markdown and JSON."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from allranks.azure.verification.anonymous import anonymous
from allranks.azure.verification.comparison import KINDS, FactComparison
from allranks.azure.verification.results import step_of
from allranks.runs.formatting import count, duration, rank_list, step_layout
from allranks.runs.records import RunRecord, Status, StepRecord

PAGE = "README.md"
DATA = "comparison.json"


@dataclass(frozen=True)
class Report:
    """The result of a verification.

    run:      the run on Azure ML
    size:     the size of its instances, as it was requested; "" for a cluster
    versions: by package
    compared: everything that was compared
    missing:  the launches without records on Azure ML
    names:    what must not be published, each with its placeholder
    """

    run: RunRecord
    size: str
    versions: dict[str, str]
    compared: tuple[FactComparison, ...]
    missing: tuple[str, ...] = ()
    names: Mapping[str, str] = field(default_factory=dict)

    @property
    def differences(self) -> tuple[FactComparison, ...]:
        """The differences in what the platform decides."""
        return tuple(each for each in self.compared if each.is_failure)

    @property
    def incomplete(self) -> tuple[str, ...]:
        """The steps that did not complete."""
        return tuple(step.name for step in self.run.steps if step.status is not Status.COMPLETED)

    @property
    def summary(self) -> str:
        """One line with everything that counts."""
        differences = count(len(grouped(self.differences)), "difference")
        parts = [f"{differences} in {count(len(self.compared), 'comparison')}"]
        if self.incomplete:
            parts.append(f"{count(len(self.incomplete), 'step')} did not complete: {', '.join(self.incomplete)}")
        if self.missing:
            parts.append(f"not compared, because no records exist: {', '.join(self.missing)}")
        return "; ".join(parts)


def write(report: Report, folder: Path) -> None:
    """Write README.md and comparison.json into the folder, which is made if it does not exist.

    Neither has ids, names or addresses of the workspace, so that both can be published.
    """
    folder.mkdir(parents=True, exist_ok=True)
    page = anonymous("\n".join(_lines(report)) + "\n", report.names)
    (folder / PAGE).write_text(page, encoding="utf-8")
    data = {
        "size": report.size,
        "versions": report.versions,
        "steps": {step.name: str(step.status) for step in report.run.steps},
        "missing": report.missing,
        "compared": [asdict(each) for each in report.compared],
    }
    (folder / DATA).write_text(anonymous(json.dumps(data, indent=1), report.names) + "\n", encoding="utf-8")


def grouped(compared: Iterable[FactComparison]) -> dict[FactComparison, list[FactComparison]]:
    """Return the things that are the same under several launches together, by the first of them."""
    groups: dict[tuple[str, ...], list[FactComparison]] = {}
    for each in compared:
        groups.setdefault((each.kind, each.name, each.local, each.azure), []).append(each)
    return {group[0]: group for group in groups.values()}


def where(group: Sequence[FactComparison], compared: Iterable[FactComparison]) -> str:
    """Return under which launches, and on which of their ranks, something is so."""
    ranks: dict[str, set[int]] = {}
    for each in compared:
        ranks.setdefault(each.launch, set()).update(each.ranks)
    found = {each.launch: set(each.ranks) for each in group}
    if found == ranks:
        return "all launches"
    return ", ".join(
        launch if of_launch == ranks[launch] else f"{launch} {rank_list(sorted(of_launch))}"
        for launch, of_launch in found.items()
    )


def _lines(report: Report) -> Iterator[str]:
    day = time.strftime("%Y-%m-%d", time.gmtime(report.run.created))
    versions = ", ".join(f"{name} {version}" for name, version in sorted(report.versions.items()))
    yield "# Verification of an Azure ML workspace"
    yield ""
    yield f"**{report.summary}.** On {day}, on {report.size or 'a cluster'}, with {versions}."
    yield ""
    yield "`allranks verify-workspace` ran the same steps with the local engine and on Azure ML, and compared what both"
    yield "gave their processes. `<...>` stands for an id, an address, a name or a folder that differs in every run."
    yield ""
    yield "## Differences from the local engine"
    yield ""
    yield from _differences(report)
    yield "## Steps"
    yield ""
    yield from _steps(report)
    yield ""
    yield "## What was compared"
    yield ""
    yield f"The number of facts by kind. {DATA} has every one, with its value."
    yield ""
    yield from _counts(report)


def _differences(report: Report) -> Iterator[str]:
    differences = [each for each in report.compared if each.differs]
    if not report.differences:
        yield f"None, in {count(len(report.compared), 'comparison')}."
        yield ""
    for name, kind in KINDS.items():
        rows = grouped(each for each in differences if each.kind == name)
        if not rows:
            continue
        yield f"### {kind.title}" + ("" if kind.is_platform else " (not a failure)")
        yield ""
        yield kind.meaning
        yield ""
        yield "| name | expected: local engine | found: Azure ML | where |"
        yield "|---|---|---|---|"
        for first, group in rows.items():
            cells = (f"`{first.name}`", _code(first.local), _code(first.azure), where(group, report.compared))
            yield f"| {' | '.join(cells)} |"
        yield ""


def _steps(report: Report) -> Iterator[str]:
    yield "| step | launch | result | time |"
    yield "|---|---|---|---:|"
    missing = {step_of(launch) for launch in report.missing}
    for step in report.run.steps:
        note = ", no records" if step.name in missing else ""
        yield f"| {step.name} | {step_layout(step)} | {step.status}{note} | {duration(_seconds(step) or None)} |"
    minutes = sum(step.instance_count * _seconds(step) for step in report.run.steps) / 60
    yield ""
    yield f"The steps took {minutes:.1f} instance-minutes. Starting instances and building images is not in it."
    failed = [step for step in report.run.steps if step.verdict]
    for step in failed:
        reason = step.verdict.reason if step.verdict else ""
        yield ""
        yield f"{step.name}: {_code(reason)}"


def _seconds(step: StepRecord) -> float:
    return step.ended - step.started if step.started and step.ended else 0.0


def _counts(report: Report) -> Iterator[str]:
    launches = list(dict.fromkeys(each.launch for each in report.compared))
    yield f"| kind | {' | '.join(launches)} |"
    yield f"|---|{'---:|' * len(launches)}"
    for name, kind in KINDS.items():
        of_kind = [each for each in report.compared if each.kind == name]
        cells = (str(sum(each.launch == launch for each in of_kind)) for launch in launches)
        yield f"| {kind.title} | {' | '.join(cells)} |"


def _code(text: str) -> str:
    """Return a text as code in a cell of a table."""
    shown = text.replace("|", "\\|").replace("\n", " ")
    return f"`` {shown} ``" if "`" in shown else f"`{shown}`" if shown else "(empty)"
