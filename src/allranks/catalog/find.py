"""Find the components of a project: their names, layouts, inputs and outputs."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from allranks.catalog import shipped_specs
from allranks.catalog.declared_ports import Port, input_ports, output_ports
from allranks.catalog.variants import TABLE, refresh, refresh_below
from allranks.errors import InputError, Problem, Problems, did_you_mean, raise_any
from allranks.images.find import REGISTERED
from allranks.sdk import internals
from allranks.sdk.paths import nearest, project_folder
from allranks.sdk.session import session
from allranks.sdk.specs import SPECS, environment_name, load
from allranks.text import number

FOLDER = "components"
"""The folder of a project that contains a folder for each component, at any depth."""


@dataclass(frozen=True)
class ComponentInfo:
    """A component as its spec describes it.

    distribution:               pytorch, mpi, tensorflow, ray or none
    process_count_per_instance: None if the distribution does not set it; Azure ML then starts one
    environment:                its name or reference, its image, or its build context
    path:                       the spec
    tags:                       without those that tools add
    """

    name: str
    version: str
    display_name: str
    description: str
    distribution: str
    instance_count: int
    process_count_per_instance: int | None
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    environment: str
    deterministic: bool
    path: Path
    tags: Mapping[str, str] = field(default_factory=dict)

    @property
    def folder(self) -> str:
        """The name of its folder, which commands and `allranks.library` use."""
        return self.path.parent.name

    @property
    def summary(self) -> str:
        """The first sentence of its description."""
        return self.description.partition(". ")[0].rstrip(".") + "." * bool(self.description)


def find_components(root: Path | None = None) -> tuple[ComponentInfo, ...]:
    """Return the components below root, or of root itself if it contains a spec, sorted by name.

    root: a folder; default: `components` in the current folder or its nearest parent

    Raise InputError with every component that cannot be loaded, or if there is none.
    """
    root = components_folder(Path.cwd()) if root is None else root
    specs = find_specs(root)
    with session(client=False):
        loaded, problems = load_all(specs)
        components = [describe(component, spec) for spec, component in loaded]
    raise_any(problems)
    return tuple(sorted(components, key=lambda component: component.name))


def load_all(specs: Sequence[Path]) -> tuple[list[tuple[Path, Any]], Problems]:
    """Return azure-ai-ml's component of each spec, and the problems of specs that cannot be loaded."""
    components, problems = list[tuple[Path, Any]](), Problems()
    for spec in specs:
        with problems:
            components += [(spec, component) for component in load(spec)]
    return components, problems


def components_folder(start: Path) -> Path:
    """Return the nearest `components` folder in start or its parents. Raise InputError if there is none."""
    fix = "change to the project, name the folder: allranks components FOLDER, or use --library"
    return project_folder(start, FOLDER, fix)


def find_specs(root: Path) -> tuple[Path, ...]:
    """Return the specs in root at any depth, or root itself if it is a file.

    Only the variants of a component are searched for below its spec. They are written first if they are out of date.
    Folders whose names begin with a dot or an underscore are skipped.

    Raise InputError if there is none, if a folder has several, or if its table of variants is wrong.
    """
    if os.path.isfile(root):
        return (root,)
    if not os.path.isdir(root):
        raise InputError(Problem(str(root), "no such folder", "a folder with components", "check the spelling"))
    specs: list[Path] = []
    problems: list[Problem] = []
    for folder, folders, files in os.walk(root):
        own = [Path(folder, name) for name in SPECS if name in files]
        folders += {*refresh(Path(folder))}.difference(folders)
        within = not own or TABLE in files  # the code of a component may contain copies of specs
        folders[:] = sorted(name for name in folders if within and not name.startswith((".", "_")))
        specs += own
        if len(own) > 1:
            found = f"{len(own)} specs of a component"
            problems.append(Problem(folder, found, " or ".join(SPECS), "remove all but one"))
    if not specs:
        expected = f"a folder with {' or '.join(SPECS)} for each component"
        fix = "add one: allranks components new NAME, or name another folder"
        problems = [Problem(str(root), "no component", expected, fix)]
    raise_any(problems)
    return tuple(specs)


def run_target(job: str) -> str:
    """Return the spec of a component, by the name or the path of its folder, or the job itself if it is a file.

    If the job is the spec of a variant that does not exist yet, it is written. A component has the name of its folder.
    Raise InputError if neither a file nor a component has this name.
    """
    if os.path.exists(job):
        return next((file for name in SPECS if os.path.isfile(file := os.path.join(job, name))), job)
    if not job.isidentifier():
        raise_any(refresh_below(Path(job)))
        return job
    return str(spec_of(job, "a file with a pipeline or a job, or the name of a component"))


def spec_of(name: str, expected: str = "a folder with components or the name of one", *, library: bool = False) -> Path:
    """Return the spec of the component with this name in the project or in the library.

    expected: for the message
    library:  whether to ignore the project
    """
    project = None if library else nearest(Path.cwd(), FOLDER, exists=Path.is_dir)
    own = find_specs(project) if project else ()
    specs = {**shipped_specs(), **{spec.parent.name: spec for spec in own}}
    if name not in specs:
        fix = did_you_mean(name, specs, "list them: allranks components --library")
        raise InputError(Problem(name, "neither a file nor a component has this name", expected, fix))
    return specs[name]


def bounds(port: Port) -> str:
    """Return the range of a number as text; "" if it is not declared."""
    low, high = port.minimum, port.maximum
    if low is None:
        return "" if high is None else f"at most {number(high)}"
    return f"at least {number(low)}" if high is None else f"{number(low)} to {number(high)}"


def describe(component: Any, spec: Path) -> ComponentInfo:
    """Return azure-ai-ml's component as plain data."""
    distribution = getattr(component, "distribution", None)
    resources = getattr(component, "resources", None)
    processes = getattr(distribution, "process_count_per_instance", None)
    return ComponentInfo(
        name=component.name,
        version=component.version or "",
        display_name=component.display_name or component.name,
        description=" ".join((component.description or "").split()),
        distribution=distribution.type.lower() if distribution else "none",
        instance_count=int(getattr(resources, "instance_count", None) or 1),
        process_count_per_instance=None if processes is None else int(processes),
        inputs=input_ports(component),
        outputs=output_ports(component),
        environment=_environment(component),
        deterministic=component.is_deterministic is not False,
        path=spec,
        tags={str(name): str(value) for name, value in (component.tags or {}).items() if name != "codegenBy"},
    )


def _environment(component: Any) -> str:
    environment = getattr(component, "environment", None)
    if environment is None or isinstance(environment, str):
        return environment or ""
    if (file := environment_file(component)) and (name := environment_name(file)):
        return name
    if environment.build is not None:
        return str(environment.build.path)
    return str(environment.image or f"{environment.name}:{environment.version}")


def environment_file(component: Any) -> Path | None:
    """Return the file of a component's environment; None if the environment is inline or registered in Azure ML."""
    environment = getattr(component, "environment", None)
    if environment is None or isinstance(environment, str):
        return None
    source = Path(internals.source_path(environment)) if internals.source_path(environment) else None
    # The SDK sets the component's file as the file of an inline environment.
    if source and source.name not in ("component.yaml", Path(internals.source_path(component)).name):
        return source
    beside = Path(environment.path) / REGISTERED if environment.path else None
    return beside if beside and beside.is_file() else None
