"""The report on a workspace as Markdown and JSON: the differences, the steps, and the compared facts."""

import json
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path

from allranks.history.formatting import step_layout
from allranks.history.records import StepRecord
from allranks.text import count, duration, rank_list
from allranks_lab.verification.anonymous import anonymous
from allranks_lab.verification.comparison import KINDS, FactComparison, group_equal
from allranks_lab.verification.results import Results, step_of

PAGE = "README.md"
DATA = "comparison.json"


def write(results: Results, size: str, folder: Path) -> None:
    """Write README.md and comparison.json into the folder. Make the folder if it does not exist.

    size: the requested size of the instances; "" for a cluster

    Neither contains ids, names or addresses of the workspace, so both can be published.
    """
    folder.mkdir(parents=True, exist_ok=True)
    versions = {name: version(name) for name in ("allranks", "azure-ai-ml")}
    page = anonymous("\n\n".join(_blocks(results, size, versions)) + "\n", results.names)
    (folder / PAGE).write_text(page, encoding="utf-8")
    data = {
        "size": size,
        "versions": versions,
        "steps": {step.name: str(step.status) for step in results.run.steps},
        "missing": results.missing,
        "compared": [asdict(each) for each in results.compared],
    }
    (folder / DATA).write_text(anonymous(json.dumps(data, indent=1), results.names) + "\n", encoding="utf-8")


def where(group: Sequence[FactComparison], compared: Iterable[FactComparison]) -> str:
    """Return the launches, and their ranks, that a difference concerns."""
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


def _blocks(results: Results, size: str, versions: Mapping[str, str]) -> Iterator[str]:
    """Yield the headings, the paragraphs and the tables of the page."""
    day = time.strftime("%Y-%m-%d", time.gmtime(results.run.created))
    software = ", ".join(f"{name} {number}" for name, number in sorted(versions.items()))
    yield "# Verification of an Azure ML workspace"
    yield f"**{results.summary}.** On {day}, on {size or 'a cluster'}, with {software}."
    yield (
        "`allranks verify-workspace` ran the same steps with the local engine and on Azure ML, and compared what both\n"
        "gave their processes. `<...>` stands for an id, an address, a name or a folder that differs in every run."
    )
    yield "## Differences from the local engine"
    yield from _differences(results)
    yield "## Steps"
    yield from _steps(results)
    yield "## What was compared"
    yield f"The number of facts by kind. {DATA} lists each of them with its value."
    yield _counts(results)


def _differences(results: Results) -> Iterator[str]:
    differences = [each for each in results.compared if each.differs]
    if not results.differences:
        yield f"None, in {count(len(results.compared), 'comparison')}."
    for name, kind in KINDS.items():
        rows = group_equal(each for each in differences if each.kind == name)
        if not rows:
            continue
        yield f"### {kind.title}" + ("" if kind.is_platform else " (not a failure)")
        yield kind.meaning
        cells = [
            (f"`{first.name}`", _code(first.local), _code(first.azure), where(group, results.compared))
            for first, group in rows.items()
        ]
        yield _table("| name | expected: local engine | found: Azure ML | where |", "|---|---|---|---|", cells)


def _steps(results: Results) -> Iterator[str]:
    missing = {step_of(launch) for launch in results.missing}
    cells = [
        (
            step.name,
            step_layout(step),
            f"{step.status}, no records" if step.name in missing else str(step.status),
            duration(_seconds(step) or None),
        )
        for step in results.run.steps
    ]
    yield _table("| step | launch | result | time |", "|---|---|---|---:|", cells)
    minutes = sum(step.instance_count * _seconds(step) for step in results.run.steps) / 60
    yield f"The steps took {minutes:.1f} instance-minutes. Starting instances and building images is not included."
    for step in results.run.steps:
        if step.verdict:
            yield f"{step.name}: {_code(step.verdict.reason)}"


def _counts(results: Results) -> str:
    launches = list(dict.fromkeys(each.launch for each in results.compared))
    amounts = Counter((each.kind, each.launch) for each in results.compared)
    cells = [(kind.title, *(str(amounts[name, launch]) for launch in launches)) for name, kind in KINDS.items()]
    return _table(f"| kind | {' | '.join(launches)} |", f"|---|{'---:|' * len(launches)}", cells)


def _table(head: str, rule: str, rows: Iterable[Sequence[str]]) -> str:
    return "\n".join([head, rule, *(f"| {' | '.join(cells)} |" for cells in rows)])


def _seconds(step: StepRecord) -> float:
    return step.ended - step.started if step.started and step.ended else 0.0


def _code(text: str) -> str:
    shown = text.replace("|", "\\|").replace("\n", " ")
    return f"`` {shown} ``" if "`" in shown else f"`{shown}`" if shown else "(empty)"
