"""Compare the bandwidth of an all-reduce with the expected bandwidth."""

from dataclasses import dataclass

from allranks.hardware.sizes import Size

GOOD = 0.95
"""Fraction of the expected bandwidth that is good enough: runs differ by a few percent."""


@dataclass(frozen=True)
class Expected:
    """The expected bus bandwidth of an all-reduce, in GB/s, and its source; or None, and the reason."""

    gb_s: float | None
    reason: str


@dataclass(frozen=True)
class Verdict:
    """word: good, slow, or no expectation. measured_gb_s: the best over the sizes, None if none was measured."""

    word: str
    text: str
    measured_gb_s: float | None
    expected_gb_s: float | None
    failed: bool


def expected(size: Size | None, given: float | None, *, instances: int, ranks_each: int, backend: str) -> Expected:
    """Return the bandwidth to compare with. given: the user's own figure, which takes precedence.

    A size's figure is that of Azure's health check, from nccl-tests with one rank per GPU: it is not valid for other
    layouts.
    """
    if given is not None:
        return Expected(given, "as expected_gb_s says")
    if size is None:
        return Expected(None, "neither size nor expected_gb_s was given")
    if backend != "nccl":
        return Expected(None, f"the figure of {size.name} is for NCCL, and these ranks talk over {backend}")
    if ranks_each != size.gpus:
        return Expected(
            None, f"the figure of {size.name} is for {size.gpus} ranks an instance, and there are {ranks_each}"
        )
    gb_s = {1: size.all_reduce_gb_s, 2: size.all_reduce_two_instances_gb_s}.get(instances)
    layout = f"{instances} instance{'s' * (instances != 1)} of {size.name}"
    if gb_s is None:
        return Expected(None, f"no figure is known for {layout}")
    return Expected(gb_s, f"as Azure's health check expects of {layout}")


def judge(measured: float | None, against: Expected, fail_below: float | None) -> Verdict:
    """Return the verdict. measured: the best bus bandwidth of an all-reduce over the sizes, in GB/s."""
    if measured is None:
        return Verdict("no expectation", "No all-reduce was measured.", None, against.gb_s, False)
    if against.gb_s is None:
        text = f"An all-reduce reaches {measured:.3g} GB/s. There is no expectation: {against.reason}."
        return Verdict("no expectation", text, measured, None, False)
    ratio = measured / against.gb_s
    word = "good" if ratio >= GOOD else "slow"
    reached = f"{measured:.3g} GB/s, {ratio:.0%} of {against.gb_s:.3g} GB/s"
    text = f"An all-reduce reaches {reached}, {against.reason}: {word}."
    failed = fail_below is not None and ratio < fail_below
    if failed:
        text += f" The step fails below {fail_below:.0%}."
    return Verdict(word, text, measured, against.gb_s, failed)
