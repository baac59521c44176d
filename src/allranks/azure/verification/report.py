"""The report on a workspace: its steps, what was compared, and what differed, as Markdown and JSON."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from allranks.azure.verification.comparison import Compared
from allranks.runs.formatting import count, duration, rank_list, step_layout
from allranks.runs.records import RunRecord, Status

PAGE = "README.md"
DATA = "comparison.json"


@dataclass(frozen=True)
class Report:
    """What a verification found.

    run:      the run on Azure ML
    size:     the size of its instances, as it was requested; "" for a cluster
    versions: by package
    compared: everything that was compared
    """

    run: RunRecord
    size: str
    versions: dict[str, str]
    compared: tuple[Compared, ...]

    @property
    def differences(self) -> tuple[Compared, ...]:
        return tuple(each for each in self.compared if each.differs)

    @property
    def failed(self) -> tuple[str, ...]:
        """The steps that did not complete."""
        return tuple(step.name for step in self.run.steps if step.status is not Status.COMPLETED)


def write(report: Report, folder: Path) -> None:
    """Write README.md and comparison.json into the folder, which is made if it does not exist.

    Neither has ids, names or addresses of the workspace, so that both can be published.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (folder / PAGE).write_text("\n".join(_lines(report)) + "\n", encoding="utf-8")
    data = {
        "size": report.size,
        "versions": report.versions,
        "steps": {step.name: str(step.status) for step in report.run.steps},
        "compared": [asdict(each) for each in report.compared],
    }
    (folder / DATA).write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")


def _lines(report: Report) -> Iterator[str]:
    day = time.strftime("%Y-%m-%d", time.gmtime(report.run.created))
    versions = ", ".join(f"{name} {version}" for name, version in sorted(report.versions.items()))
    yield "# Verification of an Azure ML workspace"
    yield ""
    yield f"On {day}, on {report.size or 'a cluster'}, with {versions}. Made by `allranks verify-workspace`."
    yield ""
    yield "## Steps"
    yield ""
    yield "| step | launch | result | time |"
    yield "|---|---|---|---:|"
    for step in report.run.steps:
        took = duration(step.ended - step.started) if step.started and step.ended else ""
        yield f"| {step.name} | {step_layout(step)} | {step.status} | {took} |"
    yield ""
    yield "## Differences from the local engine"
    yield ""
    yield from _differences(report)
    yield ""
    yield "## What was compared"
    yield ""
    yield "`<...>` stands for an id, an address or a folder that differs in every run."
    yield ""
    yield from _table([each for each in report.compared if not each.differs], "same on both")


def _differences(report: Report) -> Iterator[str]:
    if not report.differences:
        yield f"None, in {count(len(report.compared), 'comparison')}."
        return
    yield "| launch | kind | name | local engine | Azure ML | ranks |"
    yield "|---|---|---|---|---|---|"
    for each in report.differences:
        cells = (each.launch, each.kind, each.name, _code(each.local), _code(each.azure), rank_list(each.ranks))
        yield f"| {' | '.join(cells)} |"


def _table(compared: Sequence[Compared], title: str) -> Iterator[str]:
    yield f"| launch | kind | name | {title} | ranks |"
    yield "|---|---|---|---|---|"
    for each in compared:
        yield f"| {each.launch} | {each.kind} | {each.name} | {_code(each.local)} | {rank_list(each.ranks)} |"


def _code(text: str) -> str:
    """Return a text as code in a cell of a table."""
    shown = text.replace("|", "\\|").replace("\n", " ")
    return f"`` {shown} ``" if "`" in shown else f"`{shown}`" if shown else "(empty)"
