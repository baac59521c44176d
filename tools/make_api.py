"""Writes docs/reference/api.md from the docstrings and signatures of what `allranks` and `allranks.runtime` export.

python tools/make_api.py

Griffe reads the source without importing it, so that neither torch nor azure-ai-ml has to be installed.
"""

import re
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import griffe

DOCS = Path(__file__).resolve().parents[1] / "docs"
PAGE = DOCS / "reference" / "api.md"
SOURCES = (DOCS.parent / "src", DOCS.parent / "packages" / "allranks-client" / "src")

HEAD = """# Python API

Made by `make docs` from the docstrings and signatures. [From Python](../how-to/python-api.md) has examples.

"""

MODULES = {
    "allranks": "Run, check and look at pipelines on this machine, from a script or a notebook.",
    "allranks.runtime": "In the training process. It is copied next to the code that uses it, so nothing has to be "
    "installed on the cluster. Names are imported when they are first used; those that train need torch.",
}

WIDTH = 120


def page() -> str:
    """Return the whole page."""
    loader = griffe.GriffeLoader(search_paths=SOURCES, allow_inspection=False)
    package = loader.load("allranks")
    loader.load("allranks_client")
    loader.resolve_aliases()
    return HEAD + "\n".join(_module(name, _found(package, name)) for name in MODULES)


def _found(package: griffe.Object | griffe.Alias, name: str) -> griffe.Module:
    inner = name.partition(".")[2]
    module = package[inner] if inner else package
    assert isinstance(module, griffe.Module)
    return module


def _module(name: str, module: griffe.Module) -> str:
    # Names that are imported on first use are imports for type checkers. Those of a package beside allranks, and all of
    # allranks.runtime, are in no list.
    lazy = "allranks_client." if module.exports else "allranks."
    names = [*(module.exports or ()), *(each for each, origin in module.imports.items() if origin.startswith(lazy))]
    objects = {str(each): _target(module, str(each)) for each in names}
    ordered = sorted(objects, key=lambda each: (not isinstance(objects[each], griffe.Function), each))
    parts = [f"## {name}\n", _filled(MODULES[name]) + "\n", _filled(", ".join(_links(name, ordered))) + "\n"]
    parts += [_object(f"{name}.{each}", objects[each]) for each in ordered]
    return "\n".join(parts)


def _links(module: str, names: Iterable[str]) -> Iterator[str]:
    """Yield links to the headings. A heading whose anchor is taken, as `Run` after `run`, gets a number."""
    taken: Counter[str] = Counter()
    for name in names:
        anchor = re.sub(r"[^\w-]", "", f"{module}.{name}".lower())
        number = f"_{taken[anchor]}" if taken[anchor] else ""
        taken[anchor] += 1
        yield f"[`{name}`](#{anchor}{number})"


def _target(module: griffe.Module, name: str) -> griffe.Object:
    """Return what a module exports under a name. A module of the same name, such as `allranks.layout`, is not meant."""
    found = module[name]
    if isinstance(found, griffe.Module):
        found = module.package.modules_collection[module.imports[name]]
    return found.final_target if isinstance(found, griffe.Alias) else found


def _object(path: str, found: griffe.Object) -> str:
    name = path.rpartition(".")[2]
    lines = [f"### {path}\n"]
    if isinstance(found, griffe.Function):
        lines += [_code(_signature(name, found)), *_text(found, _parameters(found))]
    elif isinstance(found, griffe.Class):
        own = [each for each in found.members.values() if not each.name.startswith("_") and each.has_docstring]
        constructor = found.all_members.get("__init__")
        if isinstance(constructor, griffe.Alias):  # of a base class
            constructor = constructor.final_target
        parameters = _parameters(constructor) if isinstance(constructor, griffe.Function) else []
        text = _text(found, [*parameters, *found.members])
        # Objects of the other classes are not constructed by users.
        if isinstance(constructor, griffe.Function) and any(f"- `{each}`" in "".join(text) for each in parameters):
            lines.append(_code(_signature(name, constructor)))
        lines += text
        if attributes := [each for each in own if isinstance(each, griffe.Attribute)]:
            lines += [*(_item(f"`{each.name}`", _joined(each)) for each in attributes), ""]
        for method in own:
            if isinstance(method, griffe.Function):
                lines += [f"#### {name}.{method.name}\n", _code(*_signatures(method))]
                lines += _text(method, _parameters(method))
    elif isinstance(found, griffe.Attribute):
        lines += [_code(f"{name} = {found.value}"), *_text(found, [])]
    return "\n".join(lines)


def _signatures(method: griffe.Function) -> list[str]:
    return [_signature(method.name, each) for each in method.overloads or [method]]


def _parameters(function: griffe.Function) -> list[str]:
    return [each.name for each in function.parameters if each.name != "self"]


def _signature(name: str, function: griffe.Function) -> str:
    """Return the signature, with one parameter on each line if it is long."""
    returns = f" -> {function.returns}" if function.returns is not None and name == function.name else ""
    parts = list(_declarations(function))
    line = f"{name}({', '.join(parts)}){returns}"
    if len(line) <= WIDTH - 20:
        return line
    return "\n".join([f"{name}(", *(f"    {part}," for part in parts), f"){returns}"])


def _declarations(function: griffe.Function) -> Iterator[str]:
    before = None
    for each in function.parameters:
        if each.name == "self":
            continue
        if before is griffe.ParameterKind.positional_only and each.kind is not before:
            yield "/"
        is_first_keyword = before not in (griffe.ParameterKind.keyword_only, griffe.ParameterKind.var_positional)
        if each.kind is griffe.ParameterKind.keyword_only and is_first_keyword:
            yield "*"
        before = each.kind
        stars = {griffe.ParameterKind.var_positional: "*", griffe.ParameterKind.var_keyword: "**"}.get(each.kind, "")
        annotation = f": {each.annotation}" if each.annotation is not None else ""
        default = f" = {each.default}" if each.default is not None and not stars else ""
        yield f"{stars}{each.name}{annotation}{default}".replace("'", '"')
    if before is griffe.ParameterKind.positional_only:
        yield "/"


def _code(*lines: str) -> str:
    return "\n".join(["```python", *lines, "```", ""])


def _text(found: griffe.Object, names: Iterable[str]) -> list[str]:
    """Return the docstring as Markdown. names: those that a line of the form "name: text" may describe"""
    known = set(names)
    text = found.docstring.value if found.docstring else ""
    return [_paragraph(paragraph, known) + "\n" for paragraph in _paragraphs(text)]


def _paragraphs(text: str) -> Iterator[str]:
    """Yield the paragraphs. Lines of indented code stay together."""
    code: list[str] = []
    for paragraph in text.strip().split("\n\n"):
        if paragraph.lstrip("\n").startswith("    "):  # two blank lines may be before a function
            code.append(paragraph)
            continue
        if code:
            yield "\n\n".join(code)
            code = []
        yield paragraph
    if code:
        yield "\n\n".join(code)


def _paragraph(text: str, names: set[str]) -> str:
    text = text.replace("``", "`")
    if text.startswith("    "):
        code = re.sub(r" {3,}#", "  #", textwrap.dedent(text).rstrip())
        return f"```python\n{code}\n```"
    items = list(_items(text, names))
    if items:
        return "\n".join(_item(", ".join(f"`{name}`" for name in described), about) for described, about in items)
    return re.sub("::$", ":", text)


def _items(text: str, names: set[str]) -> Iterator[tuple[list[str], str]]:
    """Yield the names and the texts of a paragraph of lines "name: text"; nothing for another paragraph."""
    described: list[str] = []
    about: list[str] = []
    for line in text.splitlines():
        head, colon, rest = line.partition(":")
        found = [name.strip().lstrip("*") for name in head.split(",")]
        if colon and names.issuperset(found):
            if described:
                yield described, " ".join(about)
            described, about = found, [rest.strip()]
        elif described:
            about.append(line.strip())
        else:
            return
    yield described, " ".join(about)


def _item(name: str, text: str) -> str:
    return _filled(f"- {name}: {text}", "  ")


def _filled(text: str, indent: str = "") -> str:
    return textwrap.fill(text, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def _joined(found: griffe.Object | griffe.Alias) -> str:
    text = found.docstring.value if found.docstring else ""
    return " ".join(text.replace("``", "`").split())


if __name__ == "__main__":
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(page(), encoding="utf-8")
