"""`allranks environments`: list, check, build and verify the images that steps run in."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from allranks.checks import Findings
from allranks.checks import environment as environment_checks
from allranks.checks.environment import check_files
from allranks.cli.console import console, errors, print_written, to_json
from allranks.cli.lazy_group import lazy_group
from allranks.cli.options import JsonOption, argument, option
from allranks.cli.values import settings_of
from allranks.cli.views import print_whole, table_of
from allranks.cli.views.problems import print_warnings
from allranks.errors import InputError, Problem
from allranks.images.build import build as build_image
from allranks.images.build import engine as found_engine
from allranks.images.dockerfile import labels_of
from allranks.images.find import environments_folder, find_environments
from allranks.images.inside.probe_commands import as_text, is_right
from allranks.images.sync import sync as write
from allranks.images.verify import expectations
from allranks.images.verify import verify as verify_image

EnvironmentsOption: TypeAlias = Annotated[
    Path | None, option("--folder", "Folder with environments. Default: environments/ in this folder or a parent.")
]
EngineOption: TypeAlias = Annotated[
    str | None,
    option("--engine", "Program that builds images. Default: the first that is installed.", "buildah|podman|docker"),
]

app = lazy_group(
    __name__,
    {
        "list": "List the environments of a project and what they contain.",
        "check": "Check environments without building them.",
        "sync": "Update the files that are generated from the Dockerfiles.",
        "build": "Build an environment's image with buildah, podman or Docker.",
        "verify": "Verify that an image contains what its environment declares.",
    },
    help="List, check, build and verify the environments of a project.",
)


def list_(folder: EnvironmentsOption = None, json: JsonOption = False) -> None:
    """List the environments of a project and what they contain."""

    rows = [(environment, labels_of(environment.dockerfile)) for environment in find_environments(folder)]
    if json:
        entries = [
            {
                "name": environment.name,
                "registered_as": environment.registered.get("name"),
                "folder": str(environment.folder),
            }
            | {"version": labels.version, "description": labels.description, "tags": dict(labels.tags)}
            for environment, labels in rows
        ]
        print(to_json(entries))
        return
    table = table_of("!environment", "version", "what it is")
    for environment, labels in rows:
        table.add_row(environment.name, labels.version, labels.description)
    print_whole(console(), table)


def check(
    names: Annotated[
        list[str] | None,
        argument(
            "NAME|PATH",
            "Names of environments of the project, or files and folders of any environments. Default: all of the "
            "project.",
        ),
    ] = None,
    folder: EnvironmentsOption = None,
    strict: Annotated[bool, option("--strict", "For paths: warnings are problems too, and so is advice.")] = False,
    json: JsonOption = False,
) -> None:
    """Check environments without building them.

    A name is an environment of this project's style, with a Dockerfile and expect.yaml. A path is an environment of any
    project: a YAML file with image or build, or a folder, whose environments at any depth are checked for what Azure ML
    needs, together with their conda files and Dockerfiles; `allranks why --codes` lists the rules.

    Print every problem with file and line. Exit with 2 if there are any.
    """

    given = names or []
    paths = [name for name in given if _is_path(name)]
    own = [name for name in given if name not in paths]
    checked: list[str] = []
    found: list[Problem] = []
    if own or not paths:
        found += _check_own(own, folder, checked)
    for path in paths:
        if not Path(path).exists():
            raise InputError(Problem(path, "there is no such file or folder", "an environment's YAML, or a folder"))
        files, in_files = check_files(Path(path))
        checked += map(str, files)
        found += in_files.found
    findings = Findings(tuple(found)).strict() if strict else Findings(tuple(found))
    if json:
        kinds = {**findings.by_kind(), "warnings": (*findings.warnings, *findings.machine)}
        del kinds["machine"]
        print(to_json({"environments": checked, **kinds}))
        sys.exit(2 if findings.errors else 0)
    print_warnings((*findings.warnings, *findings.machine))
    if findings.errors:
        raise InputError(*findings.errors)
    hidden = f"; advice: {len(findings.advice)} (--strict lists it)" if findings.advice else ""
    console().print(f"{', '.join(checked)}: no problems{hidden}", soft_wrap=True)


def _is_path(name: str) -> bool:
    """Return whether an argument is a path: it has a separator, or it is the name of a YAML file, or it is a dot."""
    return "/" in name or name in (".", "..") or Path(name).suffix.lower() in (".yaml", ".yml")


def _check_own(names: Sequence[str], folder: Path | None, checked: list[str]) -> list[Problem]:
    """Check environments of a project by name, add their names, and return what was found."""
    root = folder or environments_folder(Path.cwd())
    found: list[Problem] = []
    for environment in find_environments(root, tuple(names)):
        found += environment_checks.check(environment, root)
        checked.append(environment.name)
    return found


def sync(
    names: Annotated[
        list[str] | None,
        argument("NAME", "Names of environments. Default: all."),
    ] = None,
    variant: Annotated[
        str | None,
        option(
            "--variant",
            "CUDA release to build with, from variants.yaml: cuda12 or cuda13. Default: the folders' own.",
            "NAME",
        ),
    ] = None,
    folder: EnvironmentsOption = None,
) -> None:
    """Update the files that are generated from the Dockerfiles.

    Copy the stages of the base into the other Dockerfiles, and write version, description and tags into each
    environment.yaml. With --variant, first write the images, versions and pinned libraries of that CUDA release.
    """

    root = folder or environments_folder(Path.cwd())
    if variant is not None and names:
        # The others would keep a base of another CUDA.
        found = f"it is given together with {', '.join(names)}"
        raise InputError(Problem("--variant", found, "one CUDA release for all environments", "omit the names"))
    print_written(write(find_environments(root, tuple(names or ())), root, variant))


def build(
    name: Annotated[str, argument("NAME", "Name of the environment.")],
    tag: Annotated[str | None, option("--tag", "Tag of the image. Default: the environment's name.")] = None,
    base_image: Annotated[
        str | None,
        option("--base-image", "Debian or Ubuntu image to build from for CPUs, with its rdma-core."),
    ] = None,
    arguments: Annotated[
        list[str] | None, option("--build-arg", "Override a row of the version table. May be repeated.", "NAME=VALUE")
    ] = None,
    options: Annotated[
        list[str] | None, option("--engine-option", "Argument that is passed to the engine. May be repeated.")
    ] = None,
    engine: EngineOption = None,
    folder: EnvironmentsOption = None,
) -> None:
    """Build an environment's image with buildah, podman or Docker.

    Exit with 1 if the build fails.
    """

    (environment,) = find_environments(folder, (name,))
    tag = tag or f"localhost/{environment.registered.get('name', name)}"
    overrides = settings_of(arguments, option="--build-arg", example="TORCH=2.13.0")
    code = build_image(environment, found_engine(engine), tag, base_image, overrides, tuple(options or ()))
    if code != 0:
        errors().print(f"the build failed with exit code {code}; there is no image {tag}")
        raise typer.Exit(1)
    console().print(f"built {tag}; verify it: allranks environments verify {tag} --environment {name}", soft_wrap=True)


def verify(
    image: Annotated[str, argument("IMAGE", "Tag of an image on this machine.")],
    environment: Annotated[str, option("--environment", "Name of the environment.")],
    engine: EngineOption = None,
    folder: EnvironmentsOption = None,
    json: JsonOption = False,
) -> None:
    """Verify that an image contains what its environment declares.

    Check versions, libraries, build options, tags, two ranks under mpirun, and an all-reduce inside the image. Exit
    with 1 if a check fails.
    """

    (chosen,) = find_environments(folder, (environment,))
    findings = list(verify_image(image, expectations(chosen), found_engine(engine)))
    print(to_json(findings) if json else as_text(findings))
    if not is_right(findings):
        raise typer.Exit(1)
