"""The palette: one HTML file with a card and a form for each component, which needs nothing else."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from allranks import __version__
from allranks.catalog.components import ComponentInfo, Port
from allranks.catalog.designer.identity import GROUPS, group_of
from allranks.catalog.designer.subject import DATA

OTHERS = "Others"
"""The group of components whose tags name none."""


@dataclass(frozen=True)
class Group:
    """Components that the palette shows together."""

    name: str
    components: tuple[ComponentInfo, ...]


def groups(components: Sequence[ComponentInfo]) -> tuple[Group, ...]:
    """The components by the tag that groups them, by name; those without one last."""
    found: dict[str, list[ComponentInfo]] = {}
    for component in components:
        tag = group_of(dict(component.tags)).replace("-", " ").strip()
        found.setdefault(tag[:1].upper() + tag[1:], []).append(component)
    names = sorted(filter(None, found)) + ([""] if "" in found else [])
    return tuple(
        Group(name or OTHERS, tuple(sorted(found[name], key=lambda each: each.display_name))) for name in names
    )


def palette(components: Sequence[ComponentInfo], title: str = "Components") -> str:
    """The page as text. The same components give the same page."""
    environment = _environment()
    loader = environment.loader
    assert loader is not None
    style, _, _ = loader.get_source(environment, "palette.css")
    script, _, _ = loader.get_source(environment, "palette.js")
    return environment.get_template("palette.html").render(
        title=title,
        groups=groups(components),
        count=len(components),
        version=__version__,
        # Both are the package's own; all else on the page is escaped.
        style=Markup(style),
        script=Markup(script),
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
    )


def write_palette(components: Sequence[ComponentInfo], path: Path) -> None:
    """Writes the page. Raises OSError where the file cannot be written."""
    half = path.with_name(f".{path.name}.half")
    try:
        half.write_text(palette(components), encoding="utf-8")
        half.replace(path)
    finally:
        half.unlink(missing_ok=True)


def layout(component: ComponentInfo) -> str:
    """Instances x processes, as the form's run settings say it."""
    if component.distribution == "none":
        return "1 process" if component.instance_count == 1 else f"{component.instance_count} instances"
    return f"{component.distribution}, {component.instance_count} x {component.process_count_per_instance}"


def bounds(port: Port) -> str:
    """What may be typed for a number; "" where it is not said."""
    low, high = port.minimum, port.maximum
    if low is None:
        return "" if high is None else f"at most {_number(high)}"
    return f"at least {_number(low)}" if high is None else f"{_number(low)} to {_number(high)}"


def _number(value: float) -> str:
    return f"{int(value):,}" if value == int(value) else f"{value:g}"


def _plain(value: float | None) -> str:
    """A number as an attribute of HTML has it."""
    return "" if value is None else str(int(value)) if value == int(value) else repr(value)


def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("allranks.catalog.page", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals.update(layout=layout, bounds=bounds, plain=_plain, DATA=DATA, GROUPS=GROUPS)
    return environment
