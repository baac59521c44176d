"""Whether an all-reduce is as fast as it should be."""

from __future__ import annotations

from dataclasses import dataclass

from allranks.hardware.sizes import Size

GOOD = 0.95
"""Of the expected bandwidth: one run differs from the next by a few percent."""


@dataclass(frozen=True)
class Expected:
    """The bus bandwidth that an all-reduce should reach, in GB/s, and who says so; or None, and why."""

    gb_s: float | None
    reason: str


@dataclass(frozen=True)
class Verdict:
    """word: good, slow, or no expectation. measured_gb_s: the best over the sizes, None where none was measured."""

    word: str
    text: str
    measured_gb_s: float | None
    expected_gb_s: float | None
    failed: bool


def expected(size: Size | None, given: float | None, *, instances: int, ranks_each: int, backend: str) -> Expected:
    """What to compare with. given: the user's own figure, which wins.

    A size's figure is Azure's health check's, of nccl-tests with one rank for each GPU: it says nothing of other ranks.
    """
    if given is not None:
        return Expected(given, "as expected_gb_s says")
    if size is None:
        return Expected(None, "neither size nor expected_gb_s was given")
    if backend != "nccl":
        return Expected(None, f"the figure of {size.name} is for NCCL, and these ranks talk over {backend}")
    if ranks_each != size.gpus:
        return Expected(
            None, f"the figure of {size.name} is for {size.gpus} ranks an instance, and here are {ranks_each}"
        )
    found = {1: size.all_reduce_gb_s, 2: size.all_reduce_two_instances_gb_s}.get(instances)
    layout = f"{instances} instance{'s' * (instances != 1)} of {size.name}"
    if found is None:
        return Expected(None, f"no figure is known for {layout}")
    return Expected(found, f"as Azure's health check expects of {layout}")


def judge(measured: float | None, against: Expected, fail_below: float | None) -> Verdict:
    """The verdict. measured: the best bus bandwidth of an all-reduce over the sizes, in GB/s."""
    if measured is None:
        return Verdict("no expectation", "No all-reduce was measured.", None, against.gb_s, False)
    if against.gb_s is None:
        text = f"An all-reduce reaches {measured:.3g} GB/s. There is no expectation: {against.reason}."
        return Verdict("no expectation", text, measured, None, False)
    part = measured / against.gb_s
    word = "good" if part >= GOOD else "slow"
    reached = f"{measured:.3g} GB/s, {part:.0%} of {against.gb_s:.3g} GB/s"
    text = f"An all-reduce reaches {reached}, {against.reason}: {word}."
    failed = fail_below is not None and part < fail_below
    if failed:
        text += f" The step fails below {fail_below:.0%}."
    return Verdict(word, text, measured, against.gb_s, failed)
