"""Prepare fork servers ahead of the steps that need them, and choose one when ranks start."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from allranks.contract.commands import Start, start_of, without_placeholders
from allranks.contract.expanded_command import PythonProgram, python_program
from allranks.contract.mpi import Mpi
from allranks.contract.produce import Job, processes
from allranks.local import installed, interpreters, rank_environment
from allranks.local.forkserver import imports, packages
from allranks.local.instances.instance import InstanceKind
from allranks.local.instances.supervisor import ForkServerSpec, Program, Supervisor
from allranks.local.rank_environment import launch_of
from allranks.local.scope import Scope
from allranks.plan.graph import Graph, Step

_NO_JOB = Job("", "", "")


@dataclass(eq=False)
class ForkServers:
    """The fork servers of one run.

    source: the pipeline's file
    shell:  runs the commands
    tracks: whether a step has an MLflow run
    cold:   whether the ranks of a step are started as new processes, without a fork server
    """

    supervisor: Supervisor
    kind: InstanceKind
    source: str
    shell: str
    tracks: Callable[[Step], bool]
    cold: Callable[[Step], bool]

    def __post_init__(self) -> None:
        self._specs = ForkServerSpecs()
        self._followers: dict[int, tuple[Graph, dict[str, list[Step]]]] = {}

    def choose(self, step: Step, programs: Sequence[Program], interpreter: Path) -> ForkServerSpec | None:
        """Return the fork server for the ranks of a step; None if they start cold."""
        if self.cold(step):
            return None
        if step.parallel is not None:  # the workers import the script, which is an argument of their program
            programs = [replace(each, python=_script_of_workers(each.python)) for each in programs]
        return self._specs.of_programs(programs, interpreter, _code(step), tracked=self.tracks(step))

    async def prepare(self, step: Step, scope: Scope, gpus: Sequence[dict[str, str]] = ()) -> None:
        """Start the fork server that the step will probably need, without waiting for it.

        gpus: for each instance, the variables that select its GPUs, if they are known
        """
        if not self.cold(step) and (spec := self._expected(step, scope, gpus)) is not None:
            await self.supervisor.prepare(spec)

    async def prepare_followers(self, step: Step, scope: Scope) -> None:
        """Start the fork servers of the steps that need this one, which has started.

        The first tutorial's three steps import different packages. Without this, its run took 1.5 times as long on two
        busy cores.
        """
        for follower in self._followers_in(scope.graph).get(step.name, ()):
            await self.prepare(follower, scope)

    def _expected(self, step: Step, scope: Scope, gpus: Sequence[dict[str, str]]) -> ForkServerSpec | None:
        """Return the fork server for a step whose inputs may not exist yet."""
        code = _code(step)
        if not code:
            return None
        interpreter = interpreters.of_environment(step.environment, self.source)
        command = without_placeholders(step.command, "x")
        own = rank_environment.variables_of(step, scope)
        paths = {"PATH": rank_environment.search_path(os.environ, interpreter), **own}
        if python_program(self.shell, command, paths, code, interpreter) is None:
            return None
        launch = launch_of(step, self.kind.instances(range(step.instance_count)), self.kind)
        ranks = processes(launch)
        machine = rank_environment.machine_variables(
            os.environ, interpreter, len(ranks), mpirun=isinstance(step.distribution, Mpi)
        )
        programs = []
        for process in ranks:
            selected = gpus[process.instance_rank] if gpus else {}
            variables = rank_environment.rank_variables(own, _NO_JOB, launch, process, self.kind)
            environment = {**machine, **selected, **variables}
            python = python_program(self.shell, command, environment, code, interpreter)
            programs.append(Program("", (), environment, code, "", python))
        return self._specs.of_programs(programs, interpreter, code, tracked=self.tracks(step))

    def _followers_in(self, graph: Graph) -> dict[str, list[Step]]:
        """Return the steps of a graph by the nodes that they need."""
        _, followers = self._followers.get(id(graph), (None, {}))
        if id(graph) not in self._followers:
            for node in graph.nodes:
                if isinstance(node, Step):
                    for name in graph.needs(node):
                        followers.setdefault(name, []).append(node)
            self._followers[id(graph)] = graph, followers  # the graph too, so that its id stays its own
        return followers


def _script_of_workers(program: PythonProgram | None) -> PythonProgram | None:
    return program and replace(program, script=program.arguments[1], arguments=program.arguments[2:])


def _code(step: Step) -> str:
    return step.code.folder if step.code else ""


_OWN = frozenset({"allranks", "allranks_steps", "__main__", "__init__", "__pycache__"})
"""Names that do not hide another module: ranks always import the copies of these packages beside their script."""
_IMPORTS_MLFLOW = re.compile(r"^\s*(?:import|from)\s+mlflow\b", re.MULTILINE)


class ForkServerSpecs:
    """Choose the fork server for ranks. The imports of a script are read once per run."""

    def __init__(self) -> None:
        self._modules: dict[tuple[str, Start, tuple[str, ...], Path, bool, bool], tuple[str, ...]] = {}
        self._specs: list[ForkServerSpec] = []

    def of_programs(
        self, programs: Sequence[Program], interpreter: Path, code: str = "", *, tracked: bool = False
    ) -> ForkServerSpec | None:
        """Return the fork server for ranks of a step; None if they start cold.

        programs: the ranks, all with the same command
        code:     the folder with the step's code; "" for the ranks' working directory
        tracked:  whether the step has an MLflow run
        """
        pythons = [program.python for program in programs if program.python is not None]
        if not pythons or len(pythons) < len(programs):
            return None
        environments = [
            {**program.environment, **python.variables} for program, python in zip(programs, pythons, strict=True)
        ]
        variables = packages.common(environments)
        if variables is None:
            return None
        modules = self._preloaded(pythons[0], environments[0], code or programs[0].folder, interpreter, tracked)
        return self._shared(ForkServerSpec(str(interpreter), variables, modules)) if modules else None

    def _shared(self, spec: ForkServerSpec) -> ForkServerSpec:
        """Return an equivalent earlier spec, or else this one."""
        for other in self._specs:
            more = set(other.modules).difference(spec.modules)
            is_larger = set(spec.modules) <= set(other.modules) and all(
                name == "numpy" or name.startswith("torch.") for name in more
            )
            if is_larger and (other.interpreter, other.environment) == (spec.interpreter, spec.environment):
                return other
        self._specs.append(spec)
        return spec

    def _preloaded(
        self, python: PythonProgram, environment: Mapping[str, str], folder: str, interpreter: Path, tracked: bool
    ) -> tuple[str, ...]:
        start = start_of(python.script, python.module, python.arguments)
        python_path = tuple(filter(None, environment.get("PYTHONPATH", "").split(os.pathsep)))
        gpus = packages.sees_gpus(environment)
        key = folder, start, python_path, interpreter, gpus, tracked
        if key not in self._modules:
            modules = preloaded(start, folder, python_path, gpus=gpus, tracked=tracked)
            script_folder = os.path.join(folder, os.path.dirname(start.script))
            if modules and hides_installed({script_folder, folder, *python_path}, interpreter):
                modules = ()
            self._modules[key] = modules
        return self._modules[key]


def hides_installed(folders: Iterable[str], interpreter: Path) -> bool:
    """Return whether a module in one of these folders has the name of one that the interpreter has installed,
    which a fork server would have imported instead."""
    names = {name for folder in folders for name in _modules(folder)} - _OWN
    if not names:
        return False
    if not names.isdisjoint(sys.stdlib_module_names) or not names.isdisjoint(("sitecustomize", "usercustomize")):
        return True
    packages = [str(folder) for folder in installed.folders(interpreter)]
    return any(
        os.path.exists(f"{folder}/{name}{suffix}") for folder in packages for name in names for suffix in ("", ".py")
    )


def _modules(folder: str) -> Iterable[str]:
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                name, _, suffix = entry.name.partition(".")
                if suffix.endswith(("py", "so")) or os.path.exists(os.path.join(entry.path, "__init__.py")):
                    yield name
    except OSError:
        return


def preloaded(
    start: Start, folder: str, python_path: Sequence[str], *, gpus: bool, tracked: bool = False
) -> tuple[str, ...]:
    """Return the modules to import before a program is forked, in order; none if that is not worth a fork server.

    PACKAGE:NAME denotes the modules that a package imports when NAME is first used.

    folder:      the working directory of the program
    python_path: of its process
    gpus:        whether its process sees GPUs
    tracked:     whether it has an MLflow run
    """
    imported, text = imports.names(start, folder, python_path)
    names = {*imported, start.module}
    later: tuple[str, ...] = ()
    uses_runtime = _uses_runtime(names)
    if uses_runtime:
        names.update(packages.RUNTIME)
    if tracked and (uses_runtime or _IMPORTS_MLFLOW.search(text)):
        later = packages.TRACKED
    names.update(
        name
        for name, pattern in packages.ATTRIBUTES.items()
        if _has(names, name.partition(".")[0]) and re.search(pattern, text)
    )
    known = [
        package
        for name, package in packages.PRELOADED.items()
        if _has(names, name) and not (gpus and package.looks_for_gpus)
    ]
    if not later and not any(package.heavy for package in known):
        return ()
    modules = [module for package in known for module in package.modules]
    parts = [part for package in packages.LAZY if package in modules for part in _parts(package, names)]
    return tuple(dict.fromkeys([*modules, *parts, *later]))


def _parts(package: str, names: Iterable[str]) -> Iterator[str]:
    """Return what a script imports by name from a package of `packages.LAZY`, each as PACKAGE:NAME."""
    for part in sorted(name.removeprefix(f"{package}.") for name in names if name.startswith(f"{package}.")):
        if part.isidentifier():
            yield f"{package}:{part}"
            yield from (f"{package}:{need}" for use, need in packages.LAZY[package].items() if part.startswith(use))


def _uses_runtime(names: Iterable[str]) -> bool:
    """Return whether a script uses the part of the runtime that needs torch."""
    used = {name for name in names if name.startswith("allranks.runtime.")}
    if used:
        return not all(name.startswith(packages.RUNTIME_WITHOUT_TORCH) for name in used)
    return any(name in ("allranks.runtime", "allranks") for name in names)


def _has(names: Iterable[str], name: str) -> bool:
    return any(other == name or other.startswith(f"{name}.") for other in names)
