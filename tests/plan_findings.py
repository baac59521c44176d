"""The findings in a plan that prevent it from running, and the others."""

from datetime import date

from allranks.checks.plan import findings
from allranks.errors import Problem
from allranks.plan.graph import Plan


def check(plan: Plan, *, here: bool = True) -> list[Problem]:
    found = findings(plan, here=here)
    return [*found.errors, *found.machine]


def warnings(plan: Plan, today: date | None = None) -> list[Problem]:
    return list(findings(plan, today=today).warnings)
