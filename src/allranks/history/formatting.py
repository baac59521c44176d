"""Format layouts, states, resource usage and results for the terminal and the page of a run."""

import re
from collections.abc import Sequence
from pathlib import Path
from types import MappingProxyType

from allranks.history import records
from allranks.history.nested import Node, in_every_iteration, steps_of
from allranks.history.records import RankRecord, RunRecord, Status, StepRecord, Verdict
from allranks.history.usage import RankUsage, latest
from allranks.text import count, in_bytes, shortened

SYMBOLS = MappingProxyType(
    {
        Status.NOT_STARTED: "○",
        Status.PREPARING: "◌",
        Status.RUNNING: "●",
        Status.COMPLETED: "✓",
        Status.FAILED: "✗",
        Status.CANCELED: "■",
        Status.INTERRUPTED: "!",
        Status.SKIPPED: "⊘",
    }
)
"""One glyph per state. The shapes differ, so that they can be told apart without colours."""

_EXIT = re.compile(r"exit code -?\d+|ended by \w+(?: \d+)?")
"""A reason that only says how a rank ended."""


def elapsed(record: RunRecord | StepRecord, now: float) -> float | None:
    """Return the seconds that a run, a step or a group has taken so far, without the time between the executions of a
    resumed run; None before it starts, and for a reused result."""
    started = record.created if isinstance(record, RunRecord) else record.started
    if not started or (record.ended is None and record.status.ended):
        return None
    if isinstance(record, RunRecord):
        return sum(end - start for start, end in records.periods(record, now))
    if record.reused_from or record.status is Status.NOT_STARTED:
        return None
    return max((record.ended if record.ended is not None else now) - started, 0.0)


def layout(distribution: str, instance_count: int, process_count_per_instance: int) -> str:
    """Return ``pytorch 2 x 2`` (instances x processes per instance); ``1 process`` if there is no distribution."""
    if distribution in ("", "none"):
        return "1 process" if instance_count == 1 else f"{instance_count} x 1"
    return f"{distribution} {instance_count} x {process_count_per_instance}"


def step_layout(step: StepRecord) -> str:
    return layout(step.distribution, step.instance_count, step.process_count_per_instance)


def progress(step: StepRecord) -> str:
    """Return how much of its work a step has done, such as ``12/12``; "" if the total is unknown."""
    return f"{step.progress.done:,}/{step.progress.total:,}" if step.progress and step.progress.total else ""


def node_layout(node: Node) -> str:
    """Return the layout of a step, or the number of nodes in a group."""
    if node.children and all(child.is_iteration for child in node.children):
        return count(len(node.children), "trial" if node.children[0].record.is_trial else "iteration")
    if node.children:
        return count(len(steps_of(node)), "step")
    return step_layout(node.record) if node.record.kind == "command" else ""


def cause(verdict: Verdict, *, whole: bool = False) -> str:
    """Return which rank failed and how: ``rank 2 on instance 1: ValueError: bad batch (train.py:10)``; "" if neither is
    known. whole: do not shorten it to about a line"""
    number = verdict.rank if verdict.worker is None else verdict.worker
    who = "" if number is None else f"rank {number}"
    if who and verdict.instance_rank is not None:
        who += f" on instance {verdict.instance_rank}"
    if who and verdict.reason and not _EXIT.fullmatch(verdict.reason):
        where = f" ({verdict.where})" if verdict.where else ""
        return f"{who}: {verdict.reason if whole else shortened(verdict.reason)}{where}"
    if who and verdict.reason.startswith("ended by"):
        return f"{who} {verdict.reason}"
    if verdict.signal:
        return f"{who} ended by {verdict.signal}".lstrip()
    if verdict.exit_code is not None:
        return f"{who} ended with exit code {verdict.exit_code}".lstrip()
    return f"{who} ended with {verdict.reason}" if who and verdict.reason else who


def reason(verdict: Verdict) -> str:
    """Return why the step failed, unless `cause` includes it."""
    return "" if verdict.reason and verdict.reason in cause(verdict) else verdict.reason


def what_to_do(verdict: Verdict) -> str:
    """Return the advice on a known failure, with the command that explains it; "" for an unknown one."""
    return f"{verdict.advice}. More: allranks why {verdict.code}" if verdict.advice else ""


def without_reason(lines: Sequence[str], verdict: Verdict) -> list[str]:
    """Return the lines of a log or a traceback, except those that repeat the reason."""
    text = r"\s+".join(map(re.escape, verdict.reason.split()))
    return re.sub(rf"(?m)^.*?{text}\s*?$\n?", "", "\n".join(lines)).splitlines() if text else list(lines)


def current_usage(step: StepRecord) -> str:
    """Return the total usage of the running ranks of a step: ``cpu 387% · 2.1 GB``; "" if it is unknown."""
    current = _current(step)
    if not current:
        return ""
    text = f"cpu {_percent(sum(cores for cores, _ in current))} · {in_bytes(sum(used.memory for _, used in current))}"
    gpus = [used.gpu for _, used in current if used.gpu is not None]
    if gpus:
        memory = sum(used.gpu_memory or 0 for _, used in current)
        text += f" · gpu {sum(gpus) / len(gpus):.0f}% {in_bytes(memory)}"
    return text


def mean_cpu(rank: RankRecord, now: float | None) -> str:
    """Return the mean CPU usage of a rank, in percent of a core: ``97%``; "" if it is unknown. now: the end of a
    running rank"""
    cores = _mean_cores(rank, now)
    return "" if cores is None else _percent(cores)


def usage_of_ranks(step: StepRecord, now: float | None) -> dict[str, str]:
    """Return the known resource usage of the ranks of a step: ``cpu`` is their mean CPU usage, such as ``97%`` or ``3%
    to 98%``; ``memory`` and ``gpu memory`` are their peaks, such as ``1.0 GB to 1.2 GB``. now: as for `mean_cpu`"""
    cores = sorted(cores for rank in step.ranks if (cores := _mean_cores(rank, now)) is not None)
    memory = sorted(rank.peak_memory for rank in step.ranks if rank.peak_memory)
    gpu = sorted(rank.peak_gpu_memory for rank in step.ranks if rank.peak_gpu_memory)
    texts = {"cpu": [*map(_percent, cores)], "memory": [*map(in_bytes, memory)], "gpu memory": [*map(in_bytes, gpu)]}
    return {name: " to ".join(dict.fromkeys((each[0], each[-1]))) for name, each in texts.items() if each}


def _mean_cores(rank: RankRecord, now: float | None) -> float | None:
    ended = now if rank.ended is None else rank.ended
    if rank.cpu_seconds is None or rank.started is None or ended is None or ended <= rank.started:
        return None
    return rank.cpu_seconds / (ended - rank.started)


def _current(step: StepRecord) -> list[tuple[float, RankUsage]]:
    running = [rank for rank in step.ranks if rank.status is Status.RUNNING]
    found = (latest(step.usage.get(rank.instance_rank, ()), rank.rank, rank.started) for rank in running)
    return [(each[0], each[1]) for each in found if each is not None and each[0] is not None]


def _percent(cores: float) -> str:
    return f"{100 * cores:.0f}%"


def outputs_of(run: RunRecord) -> dict[str, str]:
    """Return the outputs of the run by name: paths, or values as text. A command job also has its files below
    ./outputs."""
    found = dict(run.outputs)
    if len(run.steps) == 1 and run.steps[0].name == run.name and run.steps[0].artifacts:
        (step,) = run.steps
        found["./outputs"] = f"{Path(step.folder) / 'outputs'} ({count(len(step.artifacts), 'file')})"
    return found


def models_of(run: RunRecord) -> dict[str, str]:
    """Return the versions of the models that the run's steps registered, by name of the model."""
    versions: dict[str, list[str]] = {}
    for step in run.steps:
        for model in step.models:
            by = f"by {step.name}{f' in run {step.reused_from}' if step.reused_from else ''}"
            versions.setdefault(model.name, []).append(f"version {model.version} ({by})")
    return {name: ", ".join(texts) for name, texts in versions.items()}


def reported_results(run: RunRecord) -> dict[str, str]:
    """Return the result that each step reported, by its path. For the iterations of a loop, only the last one's."""
    last: dict[str, StepRecord] = {}
    for step in run.steps:
        if step.result:
            last[in_every_iteration(step.name)] = step
    return {step.name: step.result for step in last.values()}
