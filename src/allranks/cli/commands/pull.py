"""`allranks pull`: write a job of Azure ML as files."""

from pathlib import Path
from typing import Annotated

from allranks.azure import pull as pulling
from allranks.azure.workspace import sign_in
from allranks.cli.console import print_result
from allranks.cli.options import AzureOptions, JsonOption
from allranks.cli.parameters import argument, option
from allranks.errors import InputError, Problem


def pull(
    job: Annotated[str, argument("azure:JOB", "The name of a job in the workspace, as the studio shows it.")],
    target: Annotated[
        Path | None, option("--to", "Write into this new or empty folder. Default: the name of the job.", "DIR")
    ] = None,
    *,
    azure: AzureOptions,
    json: JsonOption = False,
) -> None:
    """Write a pipeline job of Azure ML as files: Python, YAML, components and environments.

    The job may have been made in the designer. Registered assets keep their ids, so `allranks submit` sends the same
    request; allranks.yaml names their copies for runs on this machine. A component that cannot be read becomes a
    stand-in with the same ports, whose command fails.

    For example: allranks pull azure:plucky_pear_1x2y3z --to pear
    """
    name = job.removeprefix("azure:")
    if name == job or not name:
        expected, fix = "azure: and the name of a job", f"allranks pull azure:{name or 'JOB'}"
        raise InputError(Problem(f"argument {job!r}", "it does not name a job of Azure ML", expected, fix))
    folder = target or Path(name)
    client, _ = sign_in(azure)
    found = pulling.pull(client, name, folder)
    lines = [f"pulled {name} into {folder}"]
    lines += [f"  stand-in  step {step}: {why}" for step, why in found.stand_ins.items()]
    lines += [f"  note      {note}" for note in found.notes]
    print_result(json, found, *lines, f"  run it    allranks run {folder / found.files[0]}")
