"""The kinds of jobs and nodes that the local engine does not run."""

from __future__ import annotations

from allranks.errors import Level, Problem

NOT_RUN = {
    "automl": "an AutoML job",
    "data_transfer": "a data transfer that imports or exports",
    "finetuning": "a fine-tuning job of the service",
    "import": "an import node",
    "spark": "a Spark node",
    "sweep": "a sweep",
}
"""By type, as messages name them."""


def named(kind: str) -> str:
    """Return a node of a type that the local engine does not run, as messages name it."""
    return NOT_RUN.get(kind, f"a node of type {kind}")


def not_run(where: str, what: str) -> Problem:
    """Return the problem of a job that does not run here."""
    found = f"{what} does not run on this machine"
    return Problem(where, found, "a pipeline, a command job or a sweep", code="not-run-here", level=Level.MACHINE)
