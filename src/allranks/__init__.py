"""Azure ML pipeline components for distributed training, and an engine that runs the same pipelines on one machine.

The Python API::

    import allranks

    run = allranks.run("pipelines/image_classification.py", inputs={"epochs": 3})
    run.wait()
    print(run.metrics["evaluate"]["accuracy"], run.page)

`allranks.library` has the components as functions.
In the training process, `allranks.runtime` sets up the ranks.
"""

from typing import TYPE_CHECKING

from allranks.version import __version__ as __version__

if TYPE_CHECKING:
    from allranks.api.jobs import Checked, check
    from allranks.api.run import Run, RunFailedError, launch, run, runs
    from allranks.api.steps import after, layout
    from allranks.errors import InputError, Problem
    from allranks_client.client import LocalClient as LocalClient

__all__ = [
    "Checked",
    "InputError",
    "Problem",
    "Run",
    "RunFailedError",
    "after",
    "check",
    "launch",
    "layout",
    "run",
    "runs",
]

_HOMES = {
    **dict.fromkeys(("InputError", "Problem"), "allranks.errors"),
    **dict.fromkeys(("Checked", "check"), "allranks.api.jobs"),
    **dict.fromkeys(("Run", "RunFailedError", "launch", "run", "runs"), "allranks.api.run"),
    **dict.fromkeys(("after", "layout"), "allranks.api.steps"),
}
"""The module of each name."""

_HOOKS = ("LocalClient", "load_ipython_extension", "unload_ipython_extension")
"""What the package allranks-client adds."""


def __getattr__(name: str) -> object:
    """Import a name of the API when it is first used: this package is imported on every rank, where it must be fast."""
    import importlib  # each rank imports this package, which must be fast

    if name in _HOOKS:
        from allranks import packages  # takes 0.01 s to import on each rank

        return packages.hook(name, f"allranks.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)
