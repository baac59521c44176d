"""Render the palette: one self-contained HTML file with a card and a form for each component."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from allranks.catalog.declared_ports import DATA
from allranks.catalog.find import GROUPS, ComponentInfo, bounds, group_of
from allranks.history.page import html_page
from allranks.workspace import write_file

OTHERS = "Others"


class Group(NamedTuple):
    """The components of one group."""

    name: str
    components: tuple[ComponentInfo, ...]


def groups(components: Sequence[ComponentInfo]) -> tuple[Group, ...]:
    """Return the groups of the components, sorted by name. Those without a group tag are last."""
    by_tag: dict[str, list[ComponentInfo]] = {}
    for component in components:
        tag = group_of(component.tags).replace("-", " ").strip()
        by_tag.setdefault(tag[:1].upper() + tag[1:], []).append(component)
    names = sorted(filter(None, by_tag)) + ([""] if "" in by_tag else [])
    return tuple(
        Group(name or OTHERS, tuple(sorted(by_tag[name], key=lambda each: each.display_name))) for name in names
    )


def palette(components: Sequence[ComponentInfo], title: str = "Components") -> str:
    """Return the page as text. The same components give the same page."""
    environment = html_page.templates("allranks.catalog")
    environment.globals.update(layout=layout, bounds=bounds, plain=_plain, DATA=DATA, GROUPS=GROUPS)
    return html_page.render(
        environment,
        "palette.html",
        "palette.css",
        ["palette.js"],
        title=title,
        groups=groups(components),
        count=len(components),
    )


def write_palette(components: Sequence[ComponentInfo], path: Path) -> None:
    """Write the page. Raise OSError if the file cannot be written."""
    write_file(path, palette(components))


def layout(component: ComponentInfo) -> str:
    """Return instances x processes, as in the run settings of the form."""
    if component.distribution == "none":
        return "1 process" if component.instance_count == 1 else f"{component.instance_count} instances"
    if component.process_count_per_instance is None and component.instance_count == 1:
        return component.distribution
    return f"{component.distribution}, {component.instance_count} x {component.process_count_per_instance or 1}"


def _plain(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(value)
