"""The layout of a job: instance count x process count per instance."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from allranks.errors import InputError, Problem

EXAMPLE = "INSTANCESxPROCESSES, such as 2x4; 4 means 1x4"


@dataclass(frozen=True)
class Layout:
    """A number of instances with the same number of processes each. Ranks fill one instance after another.

    The constructor raises ValueError if either count is below 1.
    """

    instance_count: int = 1
    process_count_per_instance: int = 1

    def __post_init__(self) -> None:
        for name in ("instance_count", "process_count_per_instance"):
            count = getattr(self, name)
            if count < 1:
                raise ValueError(f"{name} must be at least 1, not {count}")

    @property
    def world_size(self) -> int:
        """Number of processes of the job."""
        return self.instance_count * self.process_count_per_instance


def parse(text: str, option: str) -> Layout:
    """Return the layout of a text: 2x4, or 4 for 1x4. option: the option that has the text, for the message

    Raise InputError for any other text.
    """
    match = re.fullmatch(r"(?:([1-9]\d*)x)?([1-9]\d*)", text)
    if match is None:
        raise InputError(Problem(f"{option} {text}", "it is not a layout", EXAMPLE))
    return Layout(int(match[1] or 1), int(match[2]))


def at_least_one(counts: Mapping[str, int]) -> tuple[Problem, ...]:
    """Return a problem for each count that is below 1. The keys name the settings, such as resources.instance_count."""
    low = ((key, count) for key, count in counts.items() if count < 1)
    return tuple(Problem(key, str(count), "at least 1", f"set {key} to 1 or more") for key, count in low)
