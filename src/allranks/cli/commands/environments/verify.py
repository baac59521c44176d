"""`allranks environments verify`: compare an image with what its environment declares."""

from __future__ import annotations

from typing import Annotated

import typer

from allranks.cli.options import EngineOption, EnvironmentsOption, JsonOption


def verify(
    image: Annotated[str, typer.Argument(metavar="IMAGE", help="Tag of an image on this machine.", show_default=False)],
    environment: Annotated[
        str | None,
        typer.Option(
            "--environment", help="Name of the environment. Default: taken from the image's tag.", show_default=False
        ),
    ] = None,
    engine: EngineOption = None,
    folder: EnvironmentsOption = None,
    json: JsonOption = False,
) -> None:
    """Verify that an image contains what its environment declares.

    Check versions, libraries, build options, tags, two ranks under mpirun, and an all-reduce inside the image. Exit
    with 1 if a check fails.
    """
    from allranks.cli.views.json import to_json
    from allranks.environments.build import engine as found_engine
    from allranks.environments.find import find_environments
    from allranks.environments.inside.probe_commands import as_text, is_right
    from allranks.environments.verify import expectations, named_in
    from allranks.environments.verify import verify as verify_image

    (chosen,) = find_environments(folder, (environment or named_in(image, folder),))
    findings = list(verify_image(image, expectations(chosen), found_engine(engine)))
    print(to_json(findings) if json else as_text(findings))
    if not is_right(findings):
        raise typer.Exit(1)
