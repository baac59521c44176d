"""The resource usage of a step in words, for the terminal and the page of a run."""

from __future__ import annotations

from collections.abc import Sequence

from allranks.runs.formatting import in_bytes
from allranks.runs.records import RankRecord, Status, StepRecord
from allranks.runs.usage import RankUsage, latest


def current_usage(step: StepRecord) -> str:
    """Return what the running ranks of a step use together: ``cpu 387% · 2.1 GB``; "" if that is not known."""
    current = _current(step)
    if not current:
        return ""
    text = f"cpu {_percent(sum(cores for cores, _ in current))} · {in_bytes(sum(used.memory for _, used in current))}"
    gpus = [used.gpu for _, used in current if used.gpu is not None]
    if gpus:
        memory = sum(used.gpu_memory or 0 for _, used in current)
        text += f" · gpu {sum(gpus) / len(gpus):.0f}% {in_bytes(memory)}"
    return text


def current_usage_by_rank(step: StepRecord) -> str:
    """Return what each running rank of a step uses: ``98% 1.1 GB   3% 1.0 GB``; "" if that is not known."""
    return "   ".join(f"{_percent(cores)} {in_bytes(used.memory)}" for cores, used in _current(step))


def mean_cores(rank: RankRecord, now: float | None = None) -> float | None:
    """Return the cores that a rank used on average; None if that is not known. now: end of a rank that is running"""
    ended = now if rank.ended is None else rank.ended
    if rank.cpu_seconds is None or rank.started is None or ended is None or ended <= rank.started:
        return None
    return rank.cpu_seconds / (ended - rank.started)


def mean_cpu(rank: RankRecord, now: float | None = None) -> str:
    """Return the cores that a rank used on average: ``97%`` of one; "" if that is not known."""
    cores = mean_cores(rank, now)
    return "" if cores is None else _percent(cores)


def cpu_of_ranks(step: StepRecord, now: float | None = None) -> str:
    """Return the cores that each rank of a step used on average: ``97%``, ``3% to 98%``; "" if that is not known."""
    values = [cores for rank in step.ranks if (cores := mean_cores(rank, now)) is not None]
    return _range([_percent(cores) for cores in sorted(values)])


def memory_of_ranks(step: StepRecord) -> str:
    """Return the largest memory of each rank of a step: ``1.2 GB``, ``1.0 GB to 1.2 GB``; "" if that is not known."""
    return _range([in_bytes(memory) for memory in sorted(rank.peak_memory or 0 for rank in step.ranks) if memory])


def gpu_memory_of_ranks(step: StepRecord) -> str:
    """Return the largest memory on the GPUs of each rank of a step; "" if that is not known."""
    return _range([in_bytes(used) for used in sorted(rank.peak_gpu_memory or 0 for rank in step.ranks) if used])


def _current(step: StepRecord) -> list[tuple[float, RankUsage]]:
    usage = []
    for rank in list(step.ranks):
        if rank.status is Status.RUNNING:
            found = latest(step.usage.get(rank.instance_rank, ()), rank.rank, rank.started)
            if found is not None and found[0] is not None:
                usage.append((found[0], found[1]))
    return usage


def _percent(cores: float) -> str:
    return f"{100 * cores:.0f}%"


def _range(texts: Sequence[str]) -> str:
    """Return the range of texts that are in order."""
    if not texts:
        return ""
    return texts[0] if texts[0] == texts[-1] else f"{texts[0]} to {texts[-1]}"
