"""What a fault is, and how it is written: ``kill:rank=3,step=20`` or ``random:count=5,seed=1``."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from allranks.errors import InputError, Problem, did_you_mean

OPTION = "--fault"

NEVER = math.inf
"""Of `Fault.back`: the instance does not come back. Of `Fault.lasts`: the fault lasts until the attempt ends."""

RANDOM_KINDS = ("kill", "evict", "stop")
RANDOM_STOP = 5.0
"""Seconds that a random `stop` lasts."""


@dataclass(frozen=True)
class Kind:
    """A kind of fault.

    effect:   what it does
    subject:  the key that ``KIND=VALUE`` sets. It is required; in place of a rank, an instance may be given
    others:   further keys, besides those of its moment and its step
    isolated: whether it needs instances with a network and mounts of their own
    timed:    whether it has a moment; else it lasts from the start
    """

    effect: str
    subject: str
    others: tuple[str, ...] = ()
    isolated: bool = False
    timed: bool = True

    def keys(self) -> tuple[str, ...]:
        return (self.subject, *self.others, *(("after", "step") if self.timed else ()), "node")


KINDS: Mapping[str, Kind] = {
    "kill": Kind("SIGKILL to all processes of a rank, or of all ranks of an instance", "rank", ("instance",)),
    "evict": Kind(
        "SIGTERM to the ranks of an instance, SIGKILL after the grace period, and a new attempt of the step as soon as "
        "the instance is back",
        "instance",
        ("grace", "back"),
    ),
    "stop": Kind("SIGSTOP to all processes of a rank, or of all ranks of an instance", "rank", ("instance", "for")),
    "hang": Kind("the main thread of a rank makes no progress, while its other threads run", "rank", ("instance",)),
    "slow-rank": Kind("a rank gets the processor for 1/factor of the time", "rank", ("instance", "factor", "for")),
    "slow-start": Kind("an instance starts its processes later", "instance", ("time",), timed=False),
    "clock-skew": Kind("the clock of an instance is ahead, by libfaketime", "instance", ("time",), timed=False),
    "cut": Kind("nothing passes between an instance and the others", "instance", ("for",), isolated=True),
    "delay": Kind("what an instance sends arrives later", "time", ("instance", "for"), isolated=True),
    "loss": Kind("a share of what an instance sends is lost", "share", ("instance", "for"), isolated=True),
    "rate": Kind("an instance sends at most so many bits per second", "limit", ("instance", "for"), isolated=True),
    "disk-full": Kind("nothing more can be written to the step's folders", "instance", isolated=True),
    "oom": Kind("a rank gets no more memory", "rank", ("instance",)),
}


@dataclass(frozen=True)
class Fault:
    """A fault that happens once in a run.

    node:     the path of a step, or of a node around it; "": the first step in which it can happen
    rank, instance: what it affects
    step:     the training step that must have been reached; None: it happens at a time
    after:    seconds since the ranks of the step started for the first time
    grace:    seconds from SIGTERM to SIGKILL
    back:     seconds from the end of the grace period until the evicted instance is back, or NEVER
    lasts:    seconds until it ends, or NEVER
    factor:   by which a rank is slower
    time:     seconds of a delay
    share:    of the frames that are lost
    limit:    bits per second
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
        return _text(self)


@dataclass(frozen=True)
class RandomFaults:
    """Faults whose kinds, ranks, instances and moments are random. The same seed gives the same faults.

    kinds:  of them
    steps:  the training steps 1 to `steps` are the moments; 0: moments within `within` seconds
    """

    count: int
    seed: int = 0
    kinds: tuple[str, ...] = RANDOM_KINDS
    steps: int = 0
    within: float = 60.0
    node: str = ""

    def __str__(self) -> str:
        return _text(self)

    def expand(self, instances: int, processes: int) -> tuple[Fault, ...]:
        """Return the faults for a step with this layout, the earliest first. processes: of each instance"""
        return random_faults(
            self.count,
            self.seed,
            instances,
            processes,
            kinds=self.kinds,
            steps=self.steps,
            within=self.within,
            node=self.node,
        )


def random_faults(
    count: int,
    seed: int,
    instances: int,
    processes: int,
    *,
    kinds: Sequence[str] = RANDOM_KINDS,
    steps: int = 0,
    within: float = 60.0,
    node: str = "",
) -> tuple[Fault, ...]:
    """Return random faults, the earliest first. The arguments are those of `RandomFaults`.

    Their training steps differ, if there are as many.
    """
    generator = random.Random(seed)
    moments: list[float]
    if not steps:
        moments = sorted(round(generator.uniform(0, within), 2) for _ in range(count))
    elif count <= steps:
        moments = sorted(map(float, generator.sample(range(1, steps + 1), count)))
    else:
        moments = sorted(map(float, generator.choices(range(1, steps + 1), k=count)))
    faults = []
    for moment in moments:
        kind = generator.choice(list(kinds))
        fault = Fault(kind, node, step=int(moment)) if steps else Fault(kind, node, after=moment)
        if KINDS[kind].subject == "rank":
            fault = replace(fault, rank=generator.randrange(instances * processes))
        else:
            fault = replace(fault, instance=generator.randrange(instances))
        faults.append(replace(fault, lasts=RANDOM_STOP) if kind == "stop" else fault)
    return tuple(faults)


def read(text: str) -> Fault | RandomFaults:
    """Parse the text of a fault, ``KIND:KEY=VALUE,...``. ``KIND=VALUE`` sets the key that the kind is about.

    Raise InputError for an unknown kind or key, an invalid value, and a missing or superfluous key.
    """
    where = f"{OPTION} {text}"
    name, separator, rest = re.match(r"([^:=]*)([:=]?)(.*)", text, re.DOTALL).groups()  # type: ignore[union-attr]
    if name != "random" and name not in KINDS:
        fix = did_you_mean(name, KINDS, "for example: --fault kill:rank=1,after=5s")
        raise InputError(Problem(where, f"kind {name!r}", ", ".join([*KINDS, "random"]), fix))
    keys = _RANDOM_KEYS if name == "random" else KINDS[name].keys()
    if separator == "=":
        rest = f"{keys[0]}={rest}"
    values: dict[str, Any] = {}
    for part in filter(None, rest.split(",")):
        key, _, value = part.partition("=")
        if key not in keys:
            raise InputError(Problem(where, f"key {key!r}", ", ".join(keys), did_you_mean(key, keys)))
        if key in values:
            raise InputError(Problem(where, f"key {key} twice", "each key once"))
        convert, expected = _VALUES[key]
        try:
            values[key] = convert(value)
        except ValueError:
            raise InputError(Problem(where, f"{key}={value}", expected)) from None
    if name == "random":
        if not values.get("count"):
            raise InputError(Problem(where, "no key count", "a number of faults, such as count=5"))
        return RandomFaults(**values)
    missing = [keys[0], *(["instance"] if keys[0] == "rank" else [])]
    if not values.keys() & set(missing):
        raise InputError(
            Problem(
                where,
                f"no key {' or '.join(dict.fromkeys(missing))}",
                f"such as {name}:{keys[0]}={_EXAMPLES.get(keys[0], 1)}",
            )
        )
    for one, other in (("step", "after"), ("rank", "instance")):
        if one in values and other in values:
            raise InputError(Problem(where, f"{one} and {other}", "one of them"))
    return Fault(name, **{_FIELDS.get(key, key): value for key, value in values.items()})


_FIELDS = {"for": "lasts"}
_KEYS = {field: key for key, field in _FIELDS.items()}
_EXAMPLES = {"time": "50ms", "share": "5%", "limit": "10mbit"}
_FORMATS = {"factor": "{:g}", "share": "{:g}", "limit": "{:.0f}bit"}


def _text(fault: Fault | RandomFaults) -> str:
    name = fault.kind if isinstance(fault, Fault) else "random"
    return f"{name}:{','.join(_parts(fault))}"


def _parts(fault: Fault | RandomFaults) -> Iterator[str]:
    subject = KINDS[fault.kind].subject if isinstance(fault, Fault) else "count"
    for field in fields(fault):
        value = getattr(fault, field.name)
        if field.name == "kind" or (value == field.default and (field.name != subject or value is None)):
            continue
        text = "+".join(value) if isinstance(value, tuple) else value
        if isinstance(value, float):
            text = _FORMATS.get(field.name, "{:g}s").format(value)
        yield f"{_KEYS.get(field.name, field.name)}={'never' if value == NEVER else text}"


def _number(text: str) -> int:
    if not text.isdecimal():
        raise ValueError
    return int(text)


_UNITS = {"": 1.0, "ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


def _seconds(text: str) -> float:
    found = re.fullmatch(r"(\d+(?:\.\d+)?)(ms|s|m|h|)", text)
    if found is None:
        raise ValueError
    return float(found[1]) * _UNITS[found[2]]


def _share(text: str) -> float:
    share = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    if not 0 < share <= 1:
        raise ValueError
    return share


def _limit(text: str) -> float:
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([kmg]?)bit", text)
    if found is None or not float(found[1]):
        raise ValueError
    return float(found[1]) * {"": 1e0, "k": 1e3, "m": 1e6, "g": 1e9}[found[2]]


def _factor(text: str) -> float:
    if not 1 < float(text) < NEVER:
        raise ValueError
    return float(text)


def _or_never(text: str) -> float:
    return NEVER if text == "never" else _seconds(text)


def _kinds(text: str) -> tuple[str, ...]:
    kinds = tuple(text.split("+"))
    if not set(kinds) <= set(RANDOM_KINDS):
        raise ValueError
    return kinds


_SECONDS = (_seconds, "seconds, such as 10s, 500ms or 2m")
_NUMBER = (_number, "a number, from 0")
_VALUES: Mapping[str, tuple[Callable[[str], Any], str]] = {
    **dict.fromkeys(("rank", "instance", "step", "count", "seed", "steps"), _NUMBER),
    **dict.fromkeys(("after", "grace", "for", "within", "time"), _SECONDS),
    "back": (_or_never, "seconds, such as 10s, or never"),
    "factor": (_factor, "a number above 1, such as 3"),
    "share": (_share, "a share, such as 5%"),
    "limit": (_limit, "a rate, such as 10mbit"),
    "kinds": (_kinds, f"some of {'+'.join(RANDOM_KINDS)}"),
    "node": (str, "a step's path"),
}
"""For each key: how its value is converted, which raises ValueError, and what is expected."""

_RANDOM_KEYS = tuple(field.name for field in fields(RandomFaults))
