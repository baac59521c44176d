"""The faults, and their syntax: ``kill:rank=3,step=20`` or ``random:count=5,seed=1``."""

import math
import random
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from allranks.errors import InputError, Problem, did_you_mean

OPTION = "--fault"

NEVER = math.inf
"""As `Fault.back`: the instance does not come back. As `Fault.lasts`: the fault lasts until the attempt ends."""

RANDOM_KINDS = ("kill", "evict", "stop")
RANDOM_STOP = 5.0
"""Seconds that a random `stop` lasts."""


@dataclass(frozen=True)
class Kind:
    """A kind of fault. docs/fault-injection.md describes each.

    subject:  the key that ``KIND=VALUE`` sets. It is required, except that an instance may replace a rank
    others:   further keys, besides those for the moment and the step
    isolated: whether it needs instances with a network and mounts of their own
    timed:    whether it has a moment; otherwise it lasts from the start
    """

    subject: str
    others: tuple[str, ...] = ()
    isolated: bool = False
    timed: bool = True

    def keys(self) -> tuple[str, ...]:
        return (self.subject, *self.others, *(("after", "step") if self.timed else ()), "node")


KINDS: Mapping[str, Kind] = {
    "kill": Kind("rank", ("instance",)),
    "evict": Kind("instance", ("grace", "back")),
    "stop": Kind("rank", ("instance", "for")),
    "hang": Kind("rank", ("instance",)),
    "slow-rank": Kind("rank", ("instance", "factor", "for")),
    "slow-start": Kind("instance", ("time",), timed=False),
    "clock-skew": Kind("instance", ("time",), timed=False),
    "cut": Kind("instance", ("for",), isolated=True),
    "delay": Kind("time", ("instance", "for"), isolated=True),
    "loss": Kind("share", ("instance", "for"), isolated=True),
    "rate": Kind("limit", ("instance", "for"), isolated=True),
    "disk-full": Kind("instance", isolated=True),
    "oom": Kind("rank", ("instance",)),
}


@dataclass(frozen=True)
class Fault:
    """A fault that happens once in a run.

    node:     the path of a step, or of a node around it; "": the first step in which it can happen
    rank, instance: the affected rank or instance
    step:     the training step that must have been reached; None: it happens at a time
    after:    seconds since the ranks of the step started for the first time
    grace:    seconds from SIGTERM to SIGKILL
    back:     seconds from the end of the grace period until the evicted instance is back, or NEVER
    lasts:    seconds until it ends, or NEVER
    factor:   the factor by which a rank is slower
    time:     the delay in seconds
    share:    the share of lost frames
    limit:    the rate in bits per second
    """

    kind: str
    node: str = ""
    rank: int | None = None
    instance: int | None = None
    step: int | None = None
    after: float = 0.0
    grace: float = 30.0
    back: float = 0.0
    lasts: float = NEVER
    factor: float = 2.0
    time: float = 10.0
    share: float = 0.0
    limit: float = 0.0

    def __str__(self) -> str:
        return f"{self.kind}:{_text(self, KINDS[self.kind].subject)}"


@dataclass(frozen=True)
class RandomFaults:
    """Faults whose kinds, ranks, instances and moments are random. The same seed gives the same faults.

    kinds:  the kinds to choose from
    steps:  the training steps 1 to `steps` are the moments; 0: moments within `within` seconds
    """

    count: int
    seed: int = 0
    kinds: tuple[str, ...] = RANDOM_KINDS
    steps: int = 0
    within: float = 60.0
    node: str = ""

    def __str__(self) -> str:
        return f"random:{_text(self, 'count')}"

    def expand(self, instances: int, processes: int) -> tuple[Fault, ...]:
        """Return the faults for a step with this layout, the earliest first. Their training steps differ, if there are
        enough. processes: the number on each instance"""
        generator = random.Random(self.seed)
        steps = range(1, self.steps + 1)
        if self.count <= self.steps:
            moments = generator.sample(steps, self.count)
        else:
            moments = [generator.choice(steps) if steps else 0 for _ in range(self.count)]
        faults = []
        for step in moments:
            fault = Fault(generator.choice(self.kinds), self.node, step=step or None)
            if not steps:
                fault = replace(fault, after=round(generator.uniform(0, self.within), 2))
            if KINDS[fault.kind].subject == "rank":
                fault = replace(fault, rank=generator.randrange(instances * processes))
            else:
                fault = replace(fault, instance=generator.randrange(instances))
            faults.append(replace(fault, lasts=RANDOM_STOP) if fault.kind == "stop" else fault)
        return tuple(sorted(faults, key=lambda fault: (fault.step or 0, fault.after)))


def read(text: str) -> Fault | RandomFaults:
    """Parse the text of a fault, ``KIND:KEY=VALUE,...``. ``KIND=VALUE`` sets the subject of the kind.

    Raise InputError for an unknown kind or key, an invalid value, and a missing or superfluous key.
    """
    where = f"{OPTION} {text}"
    name, separator, rest = re.match(r"([^:=]*)([:=]?)(.*)", text, re.DOTALL).groups()  # type: ignore[union-attr]
    if name != "random" and name not in KINDS:
        fix = did_you_mean(name, KINDS, "for example: --fault kill:rank=1,after=5s")
        raise InputError(Problem(where, f"kind {name!r}", ", ".join([*KINDS, "random"]), fix))
    keys = tuple(field.name for field in fields(RandomFaults)) if name == "random" else KINDS[name].keys()
    if separator == "=":
        rest = f"{keys[0]}={rest}"
    values: dict[str, Any] = {}
    for part in filter(None, rest.split(",")):
        key, _, value = part.partition("=")
        if key not in keys:
            raise InputError(Problem(where, f"key {key!r}", ", ".join(keys), did_you_mean(key, keys)))
        if key in values:
            raise InputError(Problem(where, f"key {key} twice", "each key once"))
        values[key] = _value(key, value)
        if values[key] is None:
            expected = _QUANTITIES[key].expected if key in _QUANTITIES else f"some of {'+'.join(RANDOM_KINDS)}"
            raise InputError(Problem(where, f"{key}={value}", expected))
    required = {keys[0], "instance"} if keys[0] == "rank" else {keys[0]}
    if not required & values.keys():
        found = f"no key {' or '.join(sorted(required, reverse=True))}"
        raise InputError(Problem(where, found, f"such as {name}:{keys[0]}={_QUANTITIES[keys[0]].expected.split()[-1]}"))
    for one, other in (("step", "after"), ("rank", "instance")):
        if one in values and other in values:
            raise InputError(Problem(where, f"{one} and {other}", "one of them"))
    if name == "random":
        return RandomFaults(**values)
    return Fault(name, **{"lasts" if key == "for" else key: value for key, value in values.items()})


@dataclass(frozen=True)
class _Quantity:
    """A number with a unit, and its bounds. `least` itself is not allowed."""

    expected: str
    units: Mapping[str, float]
    least: float = -1
    most: float = NEVER


_NUMBER = _Quantity("a number, such as 1", {"": 1})
_SECONDS = _Quantity("seconds, such as 500ms, 2m or 10s", {"": 1, "ms": 0.001, "s": 1, "m": 60, "h": 3600})
_NUMBERS = ("rank", "instance", "step", "seed", "steps", "count")
_QUANTITIES = {
    **dict.fromkeys(_NUMBERS, _NUMBER),
    **dict.fromkeys(("after", "grace", "for", "within", "time"), _SECONDS),
    "count": replace(_NUMBER, least=0),
    "back": replace(_SECONDS, expected="never, or seconds, such as 10s"),
    "factor": _Quantity("a number above 1, such as 3", {"": 1}, least=1),
    "share": _Quantity("a share, such as 5%", {"%": 0.01, "": 1}, least=0, most=1),
    "limit": _Quantity("a rate, such as 10mbit", {"bit": 1, "kbit": 1e3, "mbit": 1e6, "gbit": 1e9}, least=0),
}


def _value(key: str, text: str) -> Any:
    """Return the value of a key; None if it is invalid."""
    if key == "node":
        return text
    if key == "kinds":
        kinds = tuple(text.split("+"))
        return kinds if set(kinds) <= set(RANDOM_KINDS) else None
    if (key, text) == ("back", "never"):
        return NEVER
    quantity, number = _QUANTITIES[key], re.fullmatch(r"(\d+(?:\.\d+)?)([a-z%]*)", text)
    if number is None or number[2] not in quantity.units or (key in _NUMBERS and not text.isdecimal()):
        return None
    value = float(number[1]) * quantity.units[number[2]]
    return None if not quantity.least < value <= quantity.most else int(value) if key in _NUMBERS else value


def _text(fault: Fault | RandomFaults, subject: str) -> str:
    units, parts = {"factor": "", "share": "", "limit": "bit"}, []
    for field in fields(fault):
        value, name = getattr(fault, field.name), field.name
        if name == "kind" or value is None or (value == field.default and name != subject):
            continue
        if isinstance(value, float):
            value = "never" if value == NEVER else f"{value:.12g}{units.get(name, 's')}"
        text = "+".join(value) if isinstance(value, tuple) else value
        parts.append(f"{'for' if name == 'lasts' else name}={text}")
    return ",".join(parts)
