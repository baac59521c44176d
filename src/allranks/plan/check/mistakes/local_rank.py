"""Warn of variables of a rank in a command that the shell expands once per instance, before a launcher sets them."""

from __future__ import annotations

from collections.abc import Iterator

from allranks.contract.requirements import LAUNCH, PER_NODE
from allranks.contract.shell_commands import expansions
from allranks.errors import Problem
from allranks.plan.check.mistakes.launchers import launcher_of
from allranks.plan.check.rule import Level, Rule
from allranks.plan.check.scope import Scope
from allranks.plan.graph import Step

LOCAL_RANK = Rule(
    "rank-expanded-once",
    Level.WARNING,
    "The command of a per-node launch has $RANK or $LOCAL_RANK. The shell expands it once per instance, so that all "
    "ranks of the instance get the same value.",
    "https://docs.pytorch.org/docs/stable/elastic/run.html: torchrun sets RANK and LOCAL_RANK in each worker; POSIX, "
    "the shell expands a parameter before it starts the command",
    "read the variable in the script",
)

NAMES = frozenset({"RANK", "LOCAL_RANK"})
"""The variables that a launcher sets for each rank that it starts."""


def of_step(_scope: Scope, step: Step) -> Iterator[Problem]:
    """Yield a warning if the shell expands a rank's variable before a launcher starts the ranks."""
    launcher = launcher_of(step.command)
    if not launcher and step.tags.get(LAUNCH) != PER_NODE:
        return
    name = next((expansion.name for expansion in expansions(step.command) if expansion.name in NAMES), "")
    if name:
        found = f"${name} in front of the ranks that {launcher or 'the command'} starts: it is expanded once"
        fix = f'read it in the script: os.environ["{name}"]'
        yield LOCAL_RANK.problem("command", found, f"no ${name} in the command", fix)
