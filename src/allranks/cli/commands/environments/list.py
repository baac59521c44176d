"""`allranks environments list`: list the environments of a project."""

from __future__ import annotations

from allranks.cli.options import EnvironmentsOption, JsonOption


def list_(folder: EnvironmentsOption = None, json: JsonOption = False) -> None:
    """List the environments of a project and what they contain."""
    from rich import box
    from rich.table import Table

    from allranks.cli.console import console
    from allranks.cli.views.json import to_json
    from allranks.cli.views.whole_tables import print_whole
    from allranks.environments.dockerfile import labels_of
    from allranks.environments.find import find_environments

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
    table = Table(box=box.SIMPLE_HEAD, header_style="bright_black", show_edge=False, pad_edge=False)
    for column in ("environment", "version", "what it is"):
        table.add_column(column, overflow="fold", no_wrap=column == "environment")
    for environment, labels in rows:
        table.add_row(environment.name, labels.version, labels.description)
    print_whole(console(), table)
