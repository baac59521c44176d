"""Read a component's requirements of its environment and its launch from its tags.

- ``requires: PACKAGE, ...``: packages that every run of it needs.
- ``requires.INPUT.VALUE: PACKAGE, ...``: packages that a choice needs. For an input named `strategy`, the libraries of
  the runtime's strategies are known without a tag.
- ``launch: KIND``: who starts its processes; see `LAUNCHES`.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from allranks.contract.distributions import processes_per_instance
from allranks.contract.launch import Distribution
from allranks.errors import Problem

REQUIRES, LAUNCH = "requires", "launch"
STRATEGY = "strategy"
"""The name of the input that selects a strategy of the runtime."""

LIBRARIES: Mapping[str, str] = {"ddp": "torch", "fsdp": "torch", "deepspeed": "deepspeed", "horovod": "horovod"}
"""Strategy -> the package that it needs."""

PER_NODE = "per node"
LAUNCHES: Mapping[str, tuple[str, ...]] = {
    "per process": ("pytorch", "mpi"),
    PER_NODE: ("pytorch", "none"),
    "MPI": ("mpi",),
    "TensorFlow workers": ("tensorflow",),
    "TensorFlow parameter servers": ("tensorflow",),
    "Ray": ("ray",),
}
"""Launch -> the distribution types that set the variables it reads. In a per-node launch, one process per instance
starts the others."""


@dataclass(frozen=True)
class Requirement:
    """Packages that a component needs if an input has a value; unconditionally if `input` is empty.

    tag: the tag that declares it; "" for a strategy
    """

    packages: tuple[str, ...]
    input: str = ""
    value: str = ""
    tag: str = ""

    def missing(self, available: frozenset[str]) -> tuple[str, ...]:
        """Return the required packages that are not available. available: normalized names"""
        return tuple(package for package in self.packages if normal(package) not in available)


def requirements(tags: Mapping[str, str], choices: Mapping[str, Sequence[str]]) -> tuple[Requirement, ...]:
    """Return the packages that a component needs. choices: the values that each input offers"""
    declared = tuple(_declared(tags))
    known = {(each.input, each.value) for each in declared}
    strategies = [value for value in choices.get(STRATEGY, ()) if value in LIBRARIES]
    return (
        *declared,
        *(Requirement((LIBRARIES[value],), STRATEGY, value) for value in strategies if (STRATEGY, value) not in known),
    )


def _declared(tags: Mapping[str, str]) -> Iterator[Requirement]:
    for tag, text in tags.items():
        packages = tuple(filter(None, (part.strip() for part in str(text).split(","))))
        first, *rest = tag.split(".", 2)
        if first == REQUIRES and len(rest) in (0, 2):
            yield Requirement(packages, rest[0] if rest else "", rest[1] if rest else "", tag)


def relevant(tags: Mapping[str, str]) -> dict[str, str]:
    """Return the tags that this module reads."""
    return {tag: str(text) for tag, text in tags.items() if tag == LAUNCH or tag.split(".")[0] == REQUIRES}


def launch_problem(launch: str, distribution: Distribution) -> Problem | None:
    """Return the problem of a distribution that does not fit a component's launch, by key; None if it fits, or if the
    launch is unknown."""
    types = LAUNCHES.get(launch)
    if types is None:
        return None
    if distribution.type not in types:
        expected = " or ".join(types)
        how = launch if launch.startswith("per ") else f"as {launch}"
        found = f"{distribution.type}; the component is launched {how}"
        return Problem("distribution.type", found, expected, f"set distribution.type to {types[0]}")
    processes = processes_per_instance(distribution)
    if launch == PER_NODE and processes > 1:
        found = f"{processes}; the component starts the processes of an instance itself"
        fix = "omit process_count_per_instance, and pass the number to the component's own input"
        return Problem("distribution.process_count_per_instance", found, "1", fix)
    return None


def normal(name: str) -> str:
    """Return a package's normalized name, which is the same for all spellings."""
    return re.sub(r"[-_.]+", "-", name).strip("-").lower()
