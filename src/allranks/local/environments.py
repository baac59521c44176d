"""Make the environments of a plan. The steps of the returned plan name the interpreters of their environments."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from allranks.contract.commands import PIP_INSTALL
from allranks.errors import Level, Problem, Problems, raise_any
from allranks.images import cache
from allranks.images.realise import HOST, Realised, realise
from allranks.local import interpreters
from allranks.plan.environment import Environment
from allranks.plan.graph import Plan, Step
from allranks.plan.walk import steps, with_steps

Report = Callable[[str, str], None]
"""Called with the name of an environment that is being made, and a progress message."""

_Key = tuple[Environment, str, str, str]


def with_interpreters(
    plan: Plan, how: str, report: Report = lambda *_: None, *, makes: bool = True
) -> tuple[Plan, list[Problem]]:
    """Return the plan with an interpreter for each environment that gets one, and warnings on differences from the
    definitions of the environments.

    how:    a name of `plan.environment.REALISED`, for each environment for which ``allranks.yaml`` names none
    makes:  whether to make missing environments

    An environment that was made before is made again if it is gone. A virtual environment that the user has made or
    mapped is used unchanged. Raise InputError, with every problem, if an environment cannot be made.
    """
    wanted: dict[_Key, list[str]] = {}
    for path, step in steps(plan.graph):
        environment = step.environment
        if environment and (environment.realised or how) != HOST and not _is_users_own(environment, plan.source):
            wanted.setdefault(_key(step, how), []).append(path)
    if not wanted:
        return plan, []
    found: dict[_Key, Realised] = {}
    problems = Problems()
    for key, paths in wanted.items():
        environment, way, _, installer = key
        name = environment.name or paths[0]
        with problems:
            found[key] = realise(environment, way, partial(report, name), makes=makes, installer=installer)
    raise_any(problems)

    def change(step: Step, path: str) -> Step:  # noqa: ARG001 - as with_steps calls it
        if (result := found.get(_key(step, how))) is None:
            return step
        interpreter = str(result.interpreter or "")
        return replace(step, environment=replace(step.environment, interpreter=interpreter, realised=result.how))

    warnings = [_warning(environment, paths, found[key]) for key, paths in wanted.items() for environment in key[:1]]
    return replace(plan, graph=with_steps(plan.graph, change)), [each for each in warnings if each]


def used_option(plan: Plan) -> str:
    """Return how the environments of a plan were made, if it is the same for all, else HOST."""
    ways = {step.environment.realised for _, step in steps(plan.graph)} - {"", HOST}
    return ways.pop() if len(ways) == 1 else HOST


def _key(step: Step, how: str) -> _Key:
    environment = step.environment
    installer = step.command if PIP_INSTALL.search(step.command) else ""
    return environment, environment.realised or how, environment.definition, installer


def _is_users_own(environment: Environment, source: str) -> bool:
    if environment.interpreter:
        return not Path(environment.interpreter).is_relative_to(cache.root())
    return interpreters.find(environment, source) != interpreters.find(Environment(), source)


def _warning(environment: Environment, paths: list[str], result: Realised) -> Problem | None:
    if not result.notes:
        return None
    where = f"environment {environment.name or environment} of {', '.join(paths[:3])}{', ...' if paths[3:] else ''}"
    kind = "" if result.how == HOST else f"{result.how}: "
    return Problem(where, kind + "; ".join(result.notes), level=Level.WARNING)
