"""`allranks environments build`: build an environment's image."""

from __future__ import annotations

from typing import Annotated

import typer

from allranks.cli.options import EngineOption, EnvironmentsOption


def build(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the environment.", show_default=False)],
    tag: Annotated[
        str | None,
        typer.Option("--tag", help="Tag of the image. Default: the environment's name.", show_default=False),
    ] = None,
    base_image: Annotated[
        str | None,
        typer.Option(
            "--base-image",
            help="Debian or Ubuntu image to build from, instead of the one in the version table.",
            show_default=False,
        ),
    ] = None,
    device: Annotated[
        str | None,
        typer.Option(
            "--device", metavar="cpu|cuda", help="Default: cuda, or cpu with --base-image.", show_default=False
        ),
    ] = None,
    ofed: Annotated[
        str | None,
        typer.Option(
            "--ofed",
            metavar="doca|distribution",
            help="Source of the InfiniBand libraries. Default: doca, or distribution with --base-image.",
            show_default=False,
        ),
    ] = None,
    arguments: Annotated[
        list[str] | None,
        typer.Option(
            "--build-arg",
            metavar="NAME=VALUE",
            help="Override a row of the version table. May be repeated.",
            show_default=False,
        ),
    ] = None,
    options: Annotated[
        list[str] | None,
        typer.Option(
            "--engine-option", help="Argument that is passed to the engine. May be repeated.", show_default=False
        ),
    ] = None,
    engine: EngineOption = None,
    folder: EnvironmentsOption = None,
) -> None:
    """Build an environment's image with buildah, podman or Docker.

    Exit with 1 if the build fails.
    """
    from allranks.cli.console import console, errors
    from allranks.cli.params import settings_of
    from allranks.environments.build import build as build_image
    from allranks.environments.build import engine as found_engine
    from allranks.environments.build import variant_for
    from allranks.environments.find import find_environments

    (environment,) = find_environments(folder, (name,))
    tag = tag or f"localhost/{environment.registered.get('name', name)}"
    overrides = settings_of(arguments)
    variant = variant_for(base_image, device, ofed)
    code = build_image(environment, found_engine(engine), tag, variant, overrides, tuple(options or ()))
    if code != 0:
        errors().print(f"the build failed with exit code {code}; there is no image {tag}")
        raise typer.Exit(1)
    console().print(f"built {tag}; verify it: allranks environments verify {tag} --environment {name}", soft_wrap=True)
