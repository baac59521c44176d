"""What a schedule declares beside its trigger: to fire when data changes, and to retry failed firings.

It is declared in tags, which azure-ai-ml and Azure ML store unchanged, so the same file can be applied to a workspace.
Azure ML ignores these tags: there, the schedule fires by its trigger.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from allranks.errors import Problem, did_you_mean, raise_any
from allranks.text import duration

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_FORMS = {
    "allranks.on_change": (r"\w+", "the name of an input of the pipeline"),
    "allranks.shortest_interval": (r"[1-9]\d{0,5}[smhd]", "a number above 0 with s, m, h or d, such as 30m"),
    "allranks.retries": (r"\d{1,3}", "a whole number from 0 to 999, in quotation marks"),
    "allranks.retry_after": (r"[1-9]\d{0,5}[smhd]", "a number above 0 with s, m, h or d, such as 10m"),
}
"""By tag: the form of its value, and a description of it."""


@dataclass(frozen=True)
class Policy:
    """The tags of a schedule.

    on_change:         the input whose changes fire the schedule on this machine; "": its trigger does
    shortest_interval: the minimum number of seconds between two such firings
    retries:           how many times a failed firing is retried
    retry_after:       seconds until the first retry. The time doubles for each further one
    """

    on_change: str = ""
    shortest_interval: int = 60
    retries: int = 0
    retry_after: int = 60

    @classmethod
    def of(cls, tags: Mapping[str, Any], place: Callable[[str], str]) -> "Policy":
        """Return the policy in the tags of a schedule. Raise InputError with all of its problems.

        place: maps a key of the schedule to its name in messages
        """
        problems: list[Problem] = []
        values: dict[str, Any] = {}
        for tag, value in tags.items():
            if not tag.startswith("allranks."):
                continue
            form, expected = _FORMS.get(tag, ("", f"one of {', '.join(_FORMS)}"))
            if not form or not isinstance(value, str) or not re.fullmatch(form, value):  # tags are sent as they are
                fix = "write it so" if form else did_you_mean(tag, _FORMS, "remove it")
                problems.append(Problem(place(f"tags.{tag}"), repr(value) if form else "unknown", expected, fix))
            else:
                name = tag.removeprefix("allranks.")
                values[name] = value if name == "on_change" else int(value.rstrip("smhd")) * _UNITS.get(value[-1], 1)
        raise_any(problems)
        return cls(**values)

    def __str__(self) -> str:
        """Return ``when images changes, at most every 30 min 00 s``; "" without a data trigger."""
        interval = duration(self.shortest_interval, whole=True)
        return f"when {self.on_change} changes, at most every {interval}" if self.on_change else ""
