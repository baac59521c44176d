"""Select the job of a Python file or notebook, or read a job object."""

import contextlib
import inspect
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from allranks.errors import InputError, Level, Problem, did_you_mean, raise_any
from allranks.sdk import internals, python_file
from allranks.sdk.offline_client import Find, Workspace
from allranks.sdk.paths import shown
from allranks.sdk.python_file import NodeLines, OnJob, PythonFile
from allranks.sdk.python_job import DslFile, PythonJob

_EXPECTED = "a function that is decorated with @dsl.pipeline, or a job in a variable of the module"


def read(path: Path, name: str | None, find: Find | None = None, *, keeps_ids: bool = False) -> DslFile | PythonJob:
    """Read the file, and return the job of this name, or the one that the file creates.

    Without a name, select the job that the file submits, else the one in a variable of the module, else the one that
    its pipeline function creates; of several functions, the one that no other uses as a pipeline component. A command
    in a variable is only a job if the file has no pipeline, because otherwise it is used to create steps.

    Call this function, and `build` of the result, inside of `python_file.importable`. Raise InputError if the file
    cannot be read, does not have that job, or has several."""
    file = python_file.read(path, find, keeps_ids=keeps_ids)
    functions = {name: value for name, value in vars(file.module).items() if is_pipeline_function(value)}
    jobs = _jobs(file)
    if name is not None:
        if name in functions:
            return DslFile(file, functions[name])
        if name in jobs:
            return PythonJob(file, name, jobs[name])
        if (made := _job_of_function(file, name, vars(file.module).get(name))) is not None:
            return made
        known = [*_defined(file, functions), *jobs]
        found = f"{name} is not a pipeline" if name in vars(file.module) else f"there is no {name}"
        expected = _EXPECTED + (f": {', '.join(known)}" if known else "")
        raise InputError(Problem(shown(path), found, expected, did_you_mean(name, known)), *file.cut_short)
    choices = _choices(file, functions, jobs)
    if len(set(map(id, choices.values()))) > 1:
        named = [f"{shown(path)}:{name}" for name in choices if name.isidentifier()]
        fix = f"name one: {' or '.join(named)}" if named else "assign each to a variable of its own, and name one"
        noun = "pipelines" if all(map(inspect.isfunction, choices.values())) else "jobs"
        found = f"it has {len(choices)} {noun}: {', '.join(choices)}"
        problem = Problem(shown(path), found, "one pipeline", fix, code="several-pipelines")
        raise InputError(problem, *file.cut_short)
    return _opened(file, choices)[0]


def refer_by_id(job: Any) -> None:
    """Let the nodes of a pipeline name their registered components by id, as for Azure ML: until now they had the
    ports of the components' copies on this machine."""
    for node in dict(getattr(job, "jobs", None) or {}).values():
        component = internals.component(node)
        if str(getattr(component, "id", None) or "").startswith("azureml:"):
            internals.replace_component(node, component.id)
        else:
            refer_by_id(component)


def read_each(path: Path, find: Find | None, on_job: OnJob) -> list[DslFile | PythonJob]:
    """Read the file. If it submits no job, return those from which `read` would select without a name, and those that
    no variable refers to any longer. Raise InputError as `read` does."""
    file = python_file.read(path, find, on_job)
    if file.workspace.submitted:
        return []
    functions = {name: value for name, value in vars(file.module).items() if is_pipeline_function(value)}
    names = {id(job): name for name, job in _jobs(file).items()}
    created = [job for job in file.nodes.jobs if not file.nodes.is_node(job)]
    jobs = {names.get(id(job), f"job {place}"): job for place, job in enumerate(created, 1)}
    return _opened(file, _choices(file, functions, {**jobs, **_jobs(file)}))


def _opened(file: PythonFile, choices: Mapping[str, Any]) -> list[DslFile | PythonJob]:
    each: dict[int, tuple[str, Any]] = {}
    for name, value in choices.items():
        each.setdefault(id(value), (name, value))
    return [
        DslFile(file, value) if inspect.isfunction(value) else PythonJob(file, name, value)
        for name, value in each.values()
    ]


def _choices(file: PythonFile, functions: dict[str, Any], jobs: dict[str, Any]) -> dict[str, Any]:
    """Return the preferred jobs of the file. Raise InputError if it has none."""
    names = {id(job): name for name, job in reversed(list(jobs.items()))}
    by_preference = (
        {names.get(id(job), f"job {place}"): job for place, job in enumerate(file.workspace.submitted, 1)},
        {name: job for name, job in jobs.items() if isinstance(job, internals.PipelineJob)},
        _without_nested(_defined(file, functions)),
        _without_bases(jobs),
    )
    if choices := next(filter(None, by_preference), None):
        return choices
    raise_any(replace(problem, level=Level.ERROR) for problem in file.warnings)
    fix, text = "", file.path.read_text(encoding="utf-8", errors="replace")
    if makers := " or ".join(f"{shown(file.path)}:{maker}" for maker in _makers(file)):
        fix = f"name a function that makes one: {makers}"
    elif file.path.suffix == ".py" and '"__main__"' in text.replace("'", '"'):
        fix = 'code below if __name__ == "__main__" is not run: create the job above it'
    raise InputError(Problem(shown(file.path), "it has no pipeline", _EXPECTED, fix, code="no-pipeline"))


def _job_of_function(file: PythonFile, name: str, function: Any) -> DslFile | PythonJob | None:
    """Return the job that a function returns or submits; None if it is not a function, or creates no job."""
    if not inspect.isfunction(function):
        return None
    if needed := _required_parameters(function):
        found = f"{name} needs {', '.join(needed)}"
        raise InputError(Problem(shown(file.path), found, "a function that can be called without arguments"))
    before = len(file.workspace.submitted)
    with file.running():
        value = function()
    file.workspace.restore()
    value = next(iter(file.workspace.submitted[before:]), value)
    if is_pipeline_function(value):
        return DslFile(file, value)
    return PythonJob(file, name, value) if isinstance(value, internals.Job) else None


def _required_parameters(function: Any) -> list[str]:
    """Return the parameters without defaults."""
    variable = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    parameters = inspect.signature(function).parameters.values()
    return [each.name for each in parameters if each.default is each.empty and each.kind not in variable]


_MAKING = frozenset({"pipeline", "command", "load_job", "create_or_update"})
"""Names of azure-ai-ml in functions that create a job."""


def _makers(file: PythonFile) -> list[str]:
    """Return the file's functions that may create a job, and can be called without arguments."""
    own = {name: value for name, value in vars(file.module).items() if inspect.isfunction(value)}
    own = {name: value for name, value in own.items() if value.__module__ == file.module.__name__}
    makers = {name for name, value in own.items() if _global_names(value.__code__) & _MAKING}
    return [
        name
        for name, value in own.items()
        if not _required_parameters(value) and (name in makers or _global_names(value.__code__) & makers)
    ]


def _defined(file: PythonFile, functions: dict[str, Callable[..., Any]]) -> dict[str, Callable[..., Any]]:
    """Return the functions that the file defines; those that it imports if it defines none."""
    defined = {
        name: value
        for name, value in functions.items()
        if vars(value)["__wrapped__"].__module__ == file.module.__name__
    }
    return defined or functions


def _without_nested(functions: dict[str, Callable[..., Any]]) -> dict[str, Callable[..., Any]]:
    """Return the functions that no other one uses as a pipeline component; all if there are none."""
    used = {
        name
        for user, function in functions.items()
        for name in functions.keys() & _global_names(vars(function)["__wrapped__"].__code__)
        if functions[name] is not functions[user]
    }
    return {name: function for name, function in functions.items() if name not in used} or functions


def _global_names(code: CodeType) -> set[str]:
    """Return the global names in a function's code, including nested functions and comprehensions."""
    inner = (constant for constant in code.co_consts if isinstance(constant, CodeType))
    return set(code.co_names).union(*map(_global_names, inner))


def _jobs(file: PythonFile) -> dict[str, Any]:
    return {
        name: value
        for name, value in vars(file.module).items()
        if isinstance(value, internals.Job) and not file.nodes.is_node(value)
    }


def _without_bases(jobs: dict[str, Any]) -> dict[str, Any]:
    """Remove commands from which others were created: ``base(lr=0.1)``, and ``base(lr=Uniform(0, 1)).sweep(...)``."""
    by_component: dict[int, list[str]] = {}
    for name, job in jobs.items():
        by_component.setdefault(id(internals.component(job, job)), []).append(name)
    bases = {names[0] for names in by_component.values() if len({id(jobs[name]) for name in names}) > 1}
    return {name: job for name, job in jobs.items() if name not in bases and not internals.is_swept(job)}


def is_pipeline_function(value: Any) -> bool:
    """Return whether a value is a function that is decorated with ``@dsl.pipeline``."""
    return inspect.isfunction(value) and internals.pipeline_builder(value) is not None


def read_object(job: Any) -> DslFile | PythonJob:
    """Return a job of azure-ai-ml, or a function that is decorated with ``@dsl.pipeline``, as if a file had created it.

    Call this function, and `build` of the result, inside of `allranks.sdk.session.session`. Raise InputError for other
    objects.
    """
    if is_pipeline_function(job):
        return DslFile(_file(vars(job)["__wrapped__"]), job)
    if isinstance(job, internals.Job):
        return PythonJob(_file(None), "job", job)
    expected = "a job of azure-ai-ml, a function that is decorated with @dsl.pipeline, or the path of a file"
    advice = "call it, and pass the job that it returns" if callable(job) else ""
    raise InputError(Problem("job", f"an object of type {type(job).__name__}", expected, advice))


@contextlib.contextmanager
def unchanged(job: Any) -> Iterator[None]:
    """Restore the inputs of a job at the end of the block."""
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
    """Return the values of inputs as texts in the form of ``--set``.

    A value is a number, a boolean, a string, a path, or an `azure.ai.ml.Input` with a path. Raise InputError for other
    values.
    """
    texts: dict[str, str] = {}
    problems = []
    for name, value in inputs.items():
        path = value if isinstance(value, (str, os.PathLike)) else getattr(value, "path", None)
        if isinstance(value, (bool, int, float)):
            texts[name] = str(value).lower() if isinstance(value, bool) else str(value)
        elif isinstance(path, (str, os.PathLike)):
            texts[name] = os.fsdecode(path)
        else:
            expected = "a number, a boolean, a string, a path, or an Input with a path"
            problems.append(Problem(f"input {name}", f"a value of type {type(value).__name__}", expected))
    raise_any(problems)
    return texts


def _file(function: Any) -> PythonFile:
    source = inspect.getsourcefile(function) if function is not None else None
    path = Path(source).absolute() if source else Path.cwd() / "__main__.py"
    module = sys.modules.get(getattr(function, "__module__", "__main__")) or ModuleType("__main__")
    return PythonFile(path, module, Workspace(path, None), NodeLines(path))
