"""Read a job, or a pipeline function, that the caller holds as a Python object."""

from __future__ import annotations

import contextlib
import inspect
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from allranks.errors import InputError, Problem
from allranks.plan.reader.dsl_file import DslFile
from allranks.plan.reader.made_job import MadeJob
from allranks.plan.reader.python_jobs import is_pipeline_function
from allranks.sdk.node_lines import NodeLines
from allranks.sdk.offline_client import Workspace
from allranks.sdk.python_file import PythonFile


def read(job: Any) -> DslFile | MadeJob:
    """Return a job of azure-ai-ml, or a function that is decorated with ``@dsl.pipeline``, as if a file had created it.

    Call it, and `build` of the result, inside of `allranks.sdk.session.session`. Raise InputError for anything else.
    """
    from azure.ai.ml.entities import Job

    if is_pipeline_function(job):
        return DslFile(_file(vars(job)["__wrapped__"]), job)
    if isinstance(job, Job):
        return MadeJob(_file(None), "job", job)
    expected = "a job of azure-ai-ml, a function that is decorated with @dsl.pipeline, or the path of a file"
    raise InputError(Problem("job", f"an object of type {type(job).__name__}", expected, _advice(job)))


def name_of(job: Any) -> str:
    """Return the name of a pipeline function or a job, for messages."""
    return str(getattr(job, "__name__", None) or getattr(job, "name", None) or type(job).__name__)


@contextlib.contextmanager
def unchanged(job: Any) -> Iterator[None]:
    """Restore the inputs of the caller's job at the end of the block."""
    ports = getattr(job, "inputs", None)
    if not isinstance(ports, dict):
        yield
        return
    before = {name: (port, dict(vars(port))) for name, port in ports.items()}
    try:
        yield
    finally:
        for name in [name for name in ports if name not in before]:
            del ports[name]
        for name, (port, state) in before.items():
            port.__dict__.update(state)
            ports[name] = port


def as_texts(inputs: Mapping[str, Any]) -> dict[str, str]:
    """Return the values of inputs as text, as ``--set`` takes them.

    A value is a number, a boolean, a string, a path, or an `azure.ai.ml.Input` with a path. Raise InputError for any
    other.
    """
    texts: dict[str, str] = {}
    problems = []
    for name, value in inputs.items():
        path = getattr(value, "path", None)
        if isinstance(value, bool):
            texts[name] = str(value).lower()
        elif isinstance(value, (str, int, float)):
            texts[name] = str(value)
        elif isinstance(value, os.PathLike):
            texts[name] = os.fsdecode(value)
        elif isinstance(path, (str, os.PathLike)):
            texts[name] = os.fsdecode(path)
        else:
            expected = "a number, a boolean, a string, a path, or an Input with a path"
            problems.append(Problem(f"input {name}", f"a value of type {type(value).__name__}", expected))
    if problems:
        raise InputError.of(problems)
    return texts


def _file(function: Any) -> PythonFile:
    source = inspect.getsourcefile(function) if function is not None else None
    path = Path(source).absolute() if source else Path.cwd() / "__main__.py"
    module = sys.modules.get(getattr(function, "__module__", "__main__")) or ModuleType("__main__")
    return PythonFile(path, module, Workspace(path, None), NodeLines(path))


def _advice(job: Any) -> str:
    return "call it, and pass the job that it returns" if callable(job) else ""
