"""Settings that a strategy has nothing for: refused, since one that is accepted and ignored is a lie."""

from __future__ import annotations

from dataclasses import fields

from allranks.errors import InputError, Problem
from allranks.runtime.settings import Settings

_DEFAULTS = {field.name: field.default for field in fields(Settings)}


def refuse(strategy: str, settings: Settings, *names: str) -> None:
    """Raise InputError where one of the named settings is not at its default."""
    for name in names:
        value = getattr(settings, name)
        if value != _DEFAULTS[name]:
            raise InputError(
                Problem(name, f"{value}, with the strategy {strategy}", "a strategy that has it", f"leave {name} out")
            )
