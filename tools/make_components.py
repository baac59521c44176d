"""Writes the tables of components and of their strategies to docs/reference/components.md.

python tools/make_components.py
"""

from pathlib import Path

from allranks.catalog.declared_ports import DATA, Port
from allranks.catalog.find import ComponentInfo, find_components
from allranks.catalog.palette import groups, layout
from allranks.contract.requirements import LIBRARIES, STRATEGY

PAGE = Path(__file__).resolve().parents[1] / "docs" / "reference" / "components.md"
PROJECT = PAGE.parents[2]
HEAD = """# The components

Made by `make docs` from the specs. The layout is instances x processes per instance.

"""
COLUMNS = ("component", "what it does", "data in", "out", "layout", "environment")


def page() -> str:
    """The whole page."""
    return f"{HEAD}{table()}\n\n## Strategies\n\n{strategies()}\n"


def table() -> str:
    lines = [_line(COLUMNS), "|" + "---|" * len(COLUMNS)]
    for group, members in groups(find_components(PROJECT / "components")).items():
        lines.append(_line((f"**{group}**", *[""] * (len(COLUMNS) - 1))))
        lines += [_line(_row(component)) for component in members]
    return "\n".join(lines)


def strategies() -> str:
    """Component x strategy x environment. tests/components/test_choices.py proves that each can work."""
    columns = ("component", "environment", "launch", *LIBRARIES)
    lines = [_line(columns), "|" + "---|" * len(columns)]
    for component in find_components(PROJECT / "components"):
        offered = next((port.enum or () for port in component.inputs if port.name == STRATEGY), ())
        if offered:
            cells = ("yes" if name in offered else "-" for name in LIBRARIES)
            environment = component.environment.removeprefix("allranks-")
            lines.append(_line((f"`{component.name}`", environment, component.tags.get("launch", "-"), *cells)))
    return "\n".join(lines)


def _row(component: ComponentInfo) -> tuple[str, ...]:
    folder = component.path.parent
    return (
        f"[`{component.name}`](../../{folder.relative_to(PROJECT).as_posix()})",
        component.summary.replace("|", "\\|"),
        _ports([port for port in component.inputs if port.type in DATA]),
        _ports(component.outputs),
        layout(component),
        component.environment.removeprefix("allranks-"),
    )


def _ports(ports: tuple[Port, ...] | list[Port]) -> str:
    """Names with types, once where numbered ones are alike."""
    shown: dict[str, None] = {}
    for port in ports:
        stem, _, number = port.name.rpartition("_")
        name = f"{stem}_1.." if number.isdecimal() else port.name
        shown[f"`{name}`" + (" (optional)" if port.optional and not number.isdecimal() else "")] = None
    return ", ".join(shown) or "-"


def _line(cells: tuple[str, ...]) -> str:
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(page(), encoding="utf-8")
