"""Commands as Azure ML's templates."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from allranks.contract import templating
from allranks.contract.templating import Name

INPUTS = {"data": "/data", "lr": "0.1", "given": "7", "missing": None, "group.size": "3"}
OUTPUTS = {"model": "/out/model"}


@pytest.mark.parametrize(
    ("command", "rendered"),
    [
        ("python train.py", "python train.py"),
        ("", ""),
        ("x --data ${{inputs.data}} --out ${{outputs.model}}", "x --data /data --out /out/model"),
        ("x ${{ inputs.lr }}", "x 0.1"),
        ("x ${{inputs.group.size}}", "x 3"),
        ("x $[[--g ${{inputs.given}}]] y", "x --g 7 y"),
        ("x $[[--m ${{inputs.missing}}]] y", "x  y"),
        ("x $[[--g ${{inputs.given}} --m ${{inputs.missing}}]]", "x "),
        ("x $[[--g ${{inputs.given}} $[[--m ${{inputs.missing}}]] z]]", "x --g 7  z"),
        ("x $[[--m ${{inputs.missing}} $[[--g ${{inputs.given}}]] z]]", "x "),
        ("x $[[--always]]", "x --always"),
        ("if [[ -d ${{inputs.data}} ]]; then x; fi", "if [[ -d /data ]]; then x; fi"),
        ("x $[[never closed ${{inputs.lr}}", "x $[[never closed 0.1"),
        ("x ${{search_space.h}} ${HOME} $$ ${{}}", "x ${{search_space.h}} ${HOME} $$ ${{}}"),
        ("a\nb ${{inputs.lr}}\n", "a\nb 0.1\n"),
    ],
)
def test_render(command: str, rendered: str) -> None:
    assert templating.render(command, INPUTS, OUTPUTS) == rendered


@pytest.mark.parametrize(
    "command", ["${{inputs.nope}}", "${{outputs.nope}}", "$[[${{inputs.nope}}]]", "${{inputs.missing}}"]
)
def test_a_name_that_stands_for_nothing(command: str) -> None:
    with pytest.raises(KeyError):
        templating.render(command, INPUTS, OUTPUTS)


@pytest.mark.parametrize(
    ("value", "text"),
    [(True, "True"), (False, "False"), (1, "1"), (1.0, "1.0"), (0.00001, "1e-05"), ("a b", "a b"), ("", "")],
)
def test_wire(value: Any, text: str) -> None:
    assert templating.wire(value) == text


def test_used_names() -> None:
    command = "x ${{inputs.a}} $[[${{inputs.b}} $[[${{outputs.c.d}}]]]] ${{inputs.a}} ${{name}}"
    assert templating.used_names(command) == (
        Name("inputs", "a"),
        Name("inputs", "b", optional=True),
        Name("outputs", "c.d", optional=True),
        Name("inputs", "a"),
        Name("name", ""),
    )


@pytest.mark.parametrize(
    ("command", "closed"),
    [("x", True), ("$[[a]]", True), ("[[ a ]]", True), ("$[[a", False), ("$[[a $[[b]]", False), ("]] $[[", False)],
)
def test_is_closed(command: str, closed: bool) -> None:
    assert templating.is_closed(command) is closed


def test_output_path() -> None:
    path = templating.output_path(
        "/a/${{name}}/${{ output_name }}/${{default_datastore}}", name="j", output_name="o", default_datastore="d"
    )
    assert path == "/a/j/o/d"
    assert templating.used_placeholders("/a/${{name}}/${{nope}}") == ("name", "nope")
    with pytest.raises(KeyError):
        templating.output_path("${{nope}}", name="j", output_name="o", default_datastore="d")


TEXT = st.text(st.characters(exclude_categories=["Cs"])).filter(
    lambda text: "$" not in text and "]" not in text and "}" not in text
)


@given(st.lists(TEXT), st.text())
def test_values_are_inserted_as_they_are(texts: list[str], value: str) -> None:
    command = "${{inputs.x}}".join(texts)
    assert templating.render(command, {"x": value}, {}) == value.join(texts)


@given(TEXT, TEXT, TEXT, st.booleans(), st.booleans())
def test_optional_parts(before: str, inside: str, after: str, outer: bool, inner: bool) -> None:
    command = f"{before}$[[{inside}${{{{inputs.o}}}}$[[{inside}${{{{inputs.i}}}}]]{after}]]{after}"
    inputs = {"o": "O" if outer else None, "i": "I" if inner else None}
    within = f"{inside}O{f'{inside}I' if inner else ''}{after}" if outer else ""
    assert templating.render(command, inputs, {}) == f"{before}{within}{after}"


@given(st.text())
def test_any_text_is_a_command(command: str) -> None:
    names = templating.used_names(command)
    inputs = {name.name: "" for name in names}
    assert isinstance(templating.render(command, inputs, inputs), str)
