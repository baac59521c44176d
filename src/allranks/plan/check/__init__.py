"""What is wrong with a plan, before anything runs: above all what azure-ai-ml lets through."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date

from allranks.errors import Problem
from allranks.plan.check import bindings, commands, graph, hardware, layouts, names, paths, unsent, values, variables
from allranks.plan.graph import Plan, Step

__all__ = ["check", "warnings"]


def check(plan: Plan, *, here: bool = True) -> list[Problem]:
    """Every problem: those of the pipeline's inputs, of each step in order, of cycles, of the pipeline's outputs.

    here: whether it is to run on this machine, which then has to be able to read the data

    Nothing is changed, and nothing but the plan is looked at, except whether local data is there.
    """
    return list(_problems(plan, here))


def warnings(plan: Plan, today: date) -> list[Problem]:
    """What would run, and is probably not what is meant: here or on the sizes that steps name."""
    return [
        warning
        for step in plan.steps
        for warning in (*unsent.of_step(step), *variables.of_step(step), *hardware.of_step(step, today))
    ]


def _problems(plan: Plan, here: bool) -> Iterator[Problem]:
    yield from names.of_pipeline(plan)
    for port in plan.inputs:
        yield from values.of_pipeline_input(plan, port)
        yield from paths.of_pipeline_input(plan, port, here)
    for step in plan.steps:
        yield from _of_step(plan, step, here)
    yield from graph.cycles(plan)
    yield from bindings.of_outputs(plan)


def _of_step(plan: Plan, step: Step, here: bool) -> Iterator[Problem]:
    yield from names.of_step(step)
    yield from commands.of_step(plan, step)
    yield from layouts.of_step(step)
    for port in step.inputs:
        wrong = list(bindings.of_input(plan, step, port))
        yield from wrong
        if not wrong:
            # A value that is not there, or of a wrong type, has no range to be in.
            yield from values.of_input(plan, step, port)
            yield from paths.of_input(step, port, here)
    for output in step.outputs:
        yield from paths.of_output(step, output)
