"""`allranks environments`: list, check, build and verify the images that steps run in."""

import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from allranks.catalog import shipped_folder
from allranks.checks import Findings
from allranks.checks.environment import check_files
from allranks.cli.commands.ci_reports import CheckedFiles, one_format, print_report
from allranks.cli.console import console, errors, print_warnings, to_json
from allranks.cli.lazy_group import lazy_group
from allranks.cli.options import FormatOption, JsonOption
from allranks.cli.parameters import argument, option
from allranks.cli.values import settings_of
from allranks.cli.views import print_whole, table_of
from allranks.errors import InputError, Problem, raise_any
from allranks.images.build import build as build_image
from allranks.images.build import engine as found_engine
from allranks.images.build import verify as verify_image
from allranks.images.find import environments_folder, find_environments
from allranks.sdk.paths import shown

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
        "build": "Build an environment's image with buildah, podman or Docker.",
        "verify": "Verify that an image contains what its environment declares.",
    },
    help="List, check, build and verify the environments of a project.",
)


def list_(folder: EnvironmentsOption = None, json: JsonOption = False) -> None:
    """List the environments of a project and what they contain."""
    keys = ("version", "description", "tags")
    environments = find_environments(folder)
    if json:
        entries = [
            {"name": each.name, "registered_as": each.registered.get("name"), "folder": str(each.folder)}
            | {key: each.registered.get(key) for key in keys}
            for each in environments
        ]
        print(to_json(entries))
        return
    table = table_of("!environment", "version", "what it is")
    for each in environments:
        table.add_row(each.name, *(str(each.registered.get(key, "")) for key in keys[:2]))
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
    strict: Annotated[bool, option("--strict", "Warnings are problems too, and so is advice.")] = False,
    format: FormatOption = "text",
    json: JsonOption = False,
) -> None:
    """Check environments without building them.

    An environment is a YAML file with image or build. In a folder, those at any depth are checked. The rules are what
    Azure ML needs of them, together with their conda files and Dockerfiles; `allranks why --codes` lists them.

    Print every problem with file and line. Exit with 2 if there are any. --format is that of `allranks check`.
    """
    format = one_format(format, json)
    checked: list[str] = []
    found: list[Problem] = []
    for path in _paths(names or (), folder):
        files, in_files = check_files(path)
        checked += map(shown, files)
        found += in_files.found
    findings = Findings(tuple(found)).strict() if strict else Findings(tuple(found))
    if format == "json":
        kinds = {**findings.by_kind(), "warnings": (*findings.warnings, *findings.machine)}
        del kinds["machine"]
        print(to_json({"environments": checked, **kinds}))
    print_report(format, [CheckedFiles(checked[0], tuple(checked), findings)])
    if format in ("json", "github"):
        sys.exit(2 if findings.errors else 0)
    print_warnings((*findings.warnings, *findings.machine))
    raise_any(findings.errors)
    hidden = f"; advice: {len(findings.advice)} (--strict lists it)" if findings.advice else ""
    if format == "text":
        console().print(f"{', '.join(checked)}: no problems{hidden}", soft_wrap=True)


def _paths(names: Sequence[str], folder: Path | None) -> Iterator[Path]:
    """Yield the files and folders to check. A name stands for the folder of that environment."""
    if not names:
        yield folder or environments_folder(Path.cwd())
    for name in names:
        if "/" not in name and name not in (".", "..") and not name.endswith((".yaml", ".yml")):
            yield from (each.folder for each in find_environments(folder, (name,)))
        elif os.path.exists(name):
            yield Path(name)
        else:
            raise InputError(Problem(name, "there is no such file or folder", "an environment's YAML, or a folder"))


def build(
    name: Annotated[str, argument("NAME", "Name of the environment.")],
    tag: Annotated[str | None, option("--tag", "Tag of the image. Default: the environment's name.")] = None,
    base_image: Annotated[
        str | None, option("--base-image", "Debian or Ubuntu image to build from for CPUs, with its rdma-core.")
    ] = None,
    arguments: Annotated[
        list[str] | None,
        option("--build-arg", "Value of an argument of the Dockerfile. May be repeated.", "NAME=VALUE"),
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
    code = build_image(environment.folder, found_engine(engine), tag, base_image, overrides, options or ())
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
    code = shipped_folder() / "components/diagnosis/verify_environment"
    if verify_image(image, chosen.expectations(), found_engine(engine), code, ["--json"] if json else []):
        raise typer.Exit(1)
