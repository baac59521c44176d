"""The sources of the studio's pages: types that equal those of the server, and packages that are pinned by content."""

import json
import re
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from types import ModuleType
from typing import get_args, get_type_hints

from allranks_studio.documents import canvas, edits

WEB = Path(__file__).parents[1] / "web"
INTERFACE = re.compile(r"^export interface (\w+)(?: extends (\w+))? \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
FIELD = re.compile(r"^  (\w+): ", re.MULTILINE)
VARIANT = re.compile(r'^  \| \{\s*(kind|op): "(\w+)";?(.*?)\s\}', re.MULTILINE | re.DOTALL)
MEMBER = re.compile(r"(?:^|;|\n)\s*(\w+): ")


def interfaces(text: str) -> dict[str, list[str]]:
    """Return the fields of each interface, those of the one that it extends first."""
    found: dict[str, list[str]] = {}
    for name, base, body in INTERFACE.findall(text):
        found[name] = [*found.get(base, []), *FIELD.findall(body)]
    return found


def variants(text: str, union: str) -> dict[str, list[str]]:
    """Return the fields of each member of a union by its tag."""
    (members,) = re.findall(rf"^export type {union} =\n((?: +.*\n)+)", text, re.MULTILINE)
    return {tag: MEMBER.findall(rest) for _, tag, rest in VARIANT.findall(members)}


def names(of: type) -> list[str]:
    return [field.name for field in fields(of)]


def snake(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


def choices(module: ModuleType) -> Iterator[tuple[str, str, set[str]]]:
    """Yield the class, the name and the values of each field that is one of a few texts."""
    for of in vars(module).values():
        if isinstance(of, type) and of.__module__ == module.__name__:
            for name, hint in get_type_hints(of).items():
                values = get_args(hint)
                if values and all(isinstance(value, str) for value in values):
                    yield of.__name__, name, set(values)


def test_the_browser_and_the_server_agree_on_documents() -> None:
    text = (WEB / "src/api.ts").read_text(encoding="utf-8")
    found = interfaces(text)
    for of in (canvas.Lock, canvas.Port, canvas.InputPort, canvas.Layout, canvas.Node, canvas.Graph):
        assert found[of.__name__] == names(of), of
    tags = {"FromInput": "input", "FromOutput": "output"}
    values = {tags.get(each.__name__, snake(each.__name__)): names(each) for each in get_args(edits.Value)}
    assert variants(text, "Value") == values
    assert variants(text, "Edit") == {snake(each.__name__): names(each) for each in get_args(edits.Edit)}
    for of, field, texts in choices(canvas):
        body = next(body for name, _, body in INTERFACE.findall(text) if name == of)
        (line,) = re.findall(rf"^  {field}: (.*?);", body, re.MULTILINE)
        assert set(re.findall(r'"(\w+)"', line)) == texts, (of, field)


def test_each_package_is_pinned_by_its_content_not_by_a_registry() -> None:
    pinned = json.loads((WEB / "package-lock.json").read_text(encoding="utf-8"))["packages"]
    del pinned[""]
    assert [name for name, each in pinned.items() if "resolved" in each or "integrity" not in each] == []
