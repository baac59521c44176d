"""What distinguishes runs in a list: their main metrics, and the inputs that differ."""

from collections.abc import Iterable, Sequence

from allranks.history.records import RunRecord


def by_pipeline(runs: Iterable[RunRecord]) -> dict[str, list[RunRecord]]:
    """Return the runs by the name of their pipeline, both in the given order."""
    found: dict[str, list[RunRecord]] = {}
    for run in runs:
        found.setdefault(run.name, []).append(run)
    return found


def main_metrics(runs: Iterable[RunRecord]) -> list[str]:
    """Return the most relevant metric of each run."""
    return list(dict.fromkeys(name for run in runs for name in list(run.results)[:1]))


def differing_inputs(runs: Sequence[RunRecord]) -> list[str]:
    """Return the inputs that have several values in the runs of one pipeline."""
    found: dict[str, None] = {}
    for group in by_pipeline(runs).values():
        names = dict.fromkeys(name for run in group for name in run.inputs)
        found |= {name: None for name in names if len({run.inputs.get(name) for run in group}) > 1}
    return list(found)
