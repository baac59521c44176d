"""Render the palette: one self-contained HTML file with a card and a form for each component."""

from collections.abc import Sequence

from allranks.catalog.declared_ports import DATA
from allranks.catalog.example import definition
from allranks.catalog.find import ComponentInfo, bounds
from allranks.history import formatting
from allranks.history.page import html_page
from allranks.sdk.paths import shown

GROUPS = ("task", "category")
"""Tags by which the palette groups components. A component's first one is used."""
OTHERS = "Others"


def groups(components: Sequence[ComponentInfo]) -> dict[str, list[ComponentInfo]]:
    """Return the components by group, sorted by name. Those without a group tag are last."""
    by_tag: dict[str, list[ComponentInfo]] = {}
    for component in sorted(components, key=lambda each: each.display_name):
        tag = next((component.tags[key] for key in GROUPS if component.tags.get(key)), "").replace("-", " ").strip()
        by_tag.setdefault(tag[:1].upper() + tag[1:] or OTHERS, []).append(component)
    return dict(sorted(by_tag.items(), key=lambda group: (group[0] == OTHERS, group[0])))


def palette(components: Sequence[ComponentInfo]) -> str:
    """Return the page as text. The same components give the same page."""
    environment = html_page.templates("allranks.catalog")
    environment.globals.update(bounds=bounds, definition=definition, shown=shown, DATA=DATA, GROUPS=GROUPS)
    return html_page.render(
        environment,
        "palette.html",
        "palette.css",
        ["palette.js"],
        title="Components",
        groups=groups(components),
        count=len(components),
    )


def layout(component: ComponentInfo) -> str:
    """Return the distribution with instances x processes; without them if the pipeline sets the layout."""
    processes = component.process_count_per_instance
    if component.distribution != "none" and component.instance_count == 1 and processes is None:
        return component.distribution
    return formatting.layout(component.distribution, component.instance_count, processes or 1)
