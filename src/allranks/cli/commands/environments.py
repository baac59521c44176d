"""`allranks environments`: the images that steps run in: what they are, whether they are right, made and proved."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from allranks.cli.options import JsonOption

app = typer.Typer(
    help="List, check, build and verify the environments of a project.", no_args_is_help=True, rich_markup_mode=None
)

FolderOption: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--folder", help="Where to look; by default environments/ here or in a folder above.", show_default=False
    ),
]
NamesArgument: TypeAlias = Annotated[
    list[str] | None, typer.Argument(metavar="NAME", help="Environments; all by default.", show_default=False)
]
EngineOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--engine", metavar="buildah|podman|docker", help="By default the first that is here.", show_default=False
    ),
]


@app.command("list")
def list_(folder: FolderOption = None, json: JsonOption = False) -> None:
    """List the environments with what is in them."""
    from rich import box
    from rich.table import Table

    from allranks.cli.as_json import to_json
    from allranks.cli.console import console
    from allranks.environments.find import find_environments
    from allranks.environments.labels import labels_of

    rows = [(each, labels_of(each.dockerfile)) for each in find_environments(folder)]
    if json:
        found = [
            {"name": each.name, "registered_as": each.registered.get("name"), "folder": str(each.folder)}
            | {"version": labels.version, "description": labels.description, "tags": dict(labels.tags)}
            for each, labels in rows
        ]
        print(to_json(found))
        return
    table = Table(box=box.SIMPLE_HEAD, header_style="bright_black", show_edge=False, pad_edge=False)
    for column in ("environment", "version", "what it is"):
        table.add_column(column, overflow="fold")
    for each, labels in rows:
        table.add_row(each.name, labels.version, labels.description)
    console().print(table)


@app.command()
def check(
    names: NamesArgument = None,
    folder: FolderOption = None,
    resolve: Annotated[
        bool, typer.Option("--resolve/--no-resolve", help="Ask pip too whether the packages go together: slow.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Say everything that is wrong, with file and line.

    Exits with 2 if anything is.
    """
    from allranks.cli.as_json import to_json
    from allranks.cli.console import console, errors
    from allranks.environments.check import check as check_one
    from allranks.environments.find import environments_folder, find_environments
    from allranks.errors import InputError

    root = folder or environments_folder(Path.cwd())
    found = find_environments(root, tuple(names or ()))
    problems = []
    for each in found:
        with errors().status(f"checking {each.name}"):  # pip takes minutes
            problems += check_one(each, root, resolve)
    if json:
        print(to_json({"environments": [each.name for each in found], "problems": problems}))
        sys.exit(2 if problems else 0)
    if problems:
        raise InputError(*problems)
    console().print(f"{', '.join(each.name for each in found)}: nothing wrong")


@app.command()
def sync(names: NamesArgument = None, folder: FolderOption = None) -> None:
    """Write what follows from the Dockerfiles.

    The base's stages into the others, and version, description and tags into each environment.yaml.
    """
    from allranks.cli.console import console
    from allranks.environments.find import environments_folder, find_environments
    from allranks.environments.sync import sync as write

    root = folder or environments_folder(Path.cwd())
    written = write(find_environments(root, tuple(names or ())), root)
    for path in written:
        console().print(f"written  {path}", soft_wrap=True)
    if not written:
        console().print("nothing to write")


@app.command()
def build(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The environment.", show_default=False)],
    tag: Annotated[
        str | None,
        typer.Option("--tag", help="What the image is called; by default the environment's name.", show_default=False),
    ] = None,
    base_image: Annotated[
        str | None,
        typer.Option(
            "--base-image", help="A Debian or Ubuntu to start from, instead of the table's.", show_default=False
        ),
    ] = None,
    device: Annotated[
        str | None,
        typer.Option(
            "--device", metavar="cpu|cuda", help="By default cuda; cpu with --base-image.", show_default=False
        ),
    ] = None,
    ofed: Annotated[
        str | None,
        typer.Option(
            "--ofed",
            metavar="doca|distribution",
            help="By default doca; distribution with --base-image.",
            show_default=False,
        ),
    ] = None,
    arguments: Annotated[
        list[str] | None,
        typer.Option(
            "--build-arg", metavar="NAME=VALUE", help="A row of the version table. May be repeated.", show_default=False
        ),
    ] = None,
    options: Annotated[
        list[str] | None,
        typer.Option("--engine-option", help="Given to the engine as it is. May be repeated.", show_default=False),
    ] = None,
    engine: EngineOption = None,
    folder: FolderOption = None,
) -> None:
    """Build an environment's image with buildah, podman or Docker. Exits with 1 where the engine fails."""
    from allranks.cli.console import console, errors
    from allranks.cli.options import settings_of
    from allranks.environments.build import build as build_image
    from allranks.environments.build import variant_for
    from allranks.environments.engines import engine as found_engine
    from allranks.environments.find import find_environments

    (environment,) = find_environments(folder, (name,))
    tag = tag or f"localhost/{environment.registered.get('name', name)}"
    given = settings_of(arguments)
    variant = variant_for(base_image, device, ofed)
    code = build_image(environment, found_engine(engine), tag, variant, given, tuple(options or ()))
    if code != 0:
        errors().print(f"the engine ended with exit code {code}; nothing is called {tag}")
        raise typer.Exit(1)
    console().print(f"built {tag}; prove it: allranks environments verify {tag} --environment {name}", soft_wrap=True)


@app.command()
def verify(
    image: Annotated[str, typer.Argument(metavar="IMAGE", help="An image on this machine.", show_default=False)],
    environment: Annotated[
        str | None,
        typer.Option("--environment", help="Which it is to be; by default the one in its name.", show_default=False),
    ] = None,
    engine: EngineOption = None,
    folder: FolderOption = None,
    json: JsonOption = False,
) -> None:
    """Prove inside an image that it is what its environment says.

    Versions, libraries, what was built with what, tags, two ranks under mpirun, an all-reduce. Exits with 1 where
    something is not true.
    """
    from allranks.cli.as_json import to_json
    from allranks.environments.engines import engine as found_engine
    from allranks.environments.find import find_environments
    from allranks.environments.inside.report import as_text, is_right
    from allranks.environments.verify import expectations, named_in
    from allranks.environments.verify import verify as verify_image

    (chosen,) = find_environments(folder, (environment or named_in(image, folder),))
    findings = list(verify_image(image, expectations(chosen), found_engine(engine)))
    print(to_json(findings) if json else as_text(findings))
    if not is_right(findings):
        raise typer.Exit(1)
