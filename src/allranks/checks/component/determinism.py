"""Check `is_deterministic`, which decides whether Azure ML may reuse an earlier result.

A component that has side effects, or reads anything but its inputs, must set it to false: a reused step would skip the
side effect, or return outdated data. The rule cannot determine what the code does, but it can read what the code calls:
it reads every module of the component that the command imports, and reports calls with known side effects if
`is_deterministic` is true. If such a call is harmless, a comment on its line that begins with `deterministic:` gives
the reason.
"""

from __future__ import annotations

import ast
import functools
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from allranks.checks.component.subject import Subject
from allranks.errors import Problem, Rule
from allranks.sdk.runtime_copy import STEPS, steps_parent

REGISTERS = "registers a model"
DOWNLOADS = "downloads from a URL"
WRITES = "writes outside of its outputs"

CALLS = {
    "register_model": REGISTERS,
    "create_model_version": REGISTERS,
    "create_registered_model": REGISTERS,
    "models.create_or_update": REGISTERS,
    "urlopen": DOWNLOADS,
    "urlretrieve": DOWNLOADS,
    "requests.get": DOWNLOADS,
    "requests.request": DOWNLOADS,
    "httpx.get": DOWNLOADS,
    "httpx.stream": DOWNLOADS,
    "wget.download": DOWNLOADS,
    "hf_hub_download": DOWNLOADS,
    "snapshot_download": DOWNLOADS,
    "hub.load": DOWNLOADS,
    "load_state_dict_from_url": DOWNLOADS,
    "requests.post": WRITES,
    "requests.put": WRITES,
    "httpx.post": WRITES,
    "httpx.put": WRITES,
    "jobs.create_or_update": WRITES,
    "data.create_or_update": WRITES,
    "upload_blob": WRITES,
    "upload_file": WRITES,
    "upload_fileobj": WRITES,
    "put_object": WRITES,
    "push_to_hub": WRITES,
}
"""The last parts of dotted names of calls with side effects. A name without a dot matches a method of any object."""

KEYWORDS = {"registered_model_name": REGISTERS, "download": DOWNLOADS}
"""Keyword arguments that give a call side effects."""

PROGRAMS = {
    r"\b(curl|wget)\s": DOWNLOADS,
    r"\bgit\s+clone\b": DOWNLOADS,
    r"\b(pip|conda|apt-get)\s+install\b": DOWNLOADS,
    r"\bazcopy\s": WRITES,
    r"\baz\s+\w": WRITES,
}
"""Programs with side effects that a command starts itself."""

WAIVER = "deterministic:"

DETERMINISM_UNSET = Rule.of_style(
    "determinism-unset",
    "Nothing says whether the component is deterministic; Azure ML then reuses its results.",
    "set true if the outputs depend on the inputs only, else false",
)
SIDE_EFFECT = Rule.warning(
    "side-effect",
    "The component is declared deterministic, but its code registers a model, downloads or uploads: a reused result "
    "skips that.",
    "Azure/azure-sdk-for-python#25007 and #29137: unwanted reuse",
    f"set is_deterministic: false, or explain on that line: # {WAIVER} ...",
)


def determinism(subject: Subject) -> Iterator[Problem]:
    if subject.deterministic is None:
        expected = "is_deterministic: true or false; the default is true: Azure ML reuses results"
        found = "nothing says whether it is deterministic"
        yield subject.report(DETERMINISM_UNSET, ("is_deterministic",), found, expected)
    if subject.deterministic is not True:
        return
    started = ((what, re.search(pattern, subject.command)) for pattern, what in PROGRAMS.items())
    effects = [(subject.place("command"), what, match[0].strip()) for what, match in started if match]
    for path, module in _reachable(subject):
        effects += [(f"{path}:{line}", effect, call) for line, effect, call in module.effects]
    for where, what, call in effects:
        found = f"is_deterministic: true, and {where} {what} ({call})"
        fix = f"set false, or, if an earlier result is as good, explain why on that line: # {WAIVER} ..."
        expected = "false: an earlier result replaces the run, and this does not happen again"
        yield subject.report(SIDE_EFFECT, ("is_deterministic",), found, expected, fix)


@dataclass(frozen=True)
class _Module:
    """What a module imports, and the line, the effect and the call of each side effect."""

    imports: tuple[str, ...]
    effects: tuple[tuple[int, str, str], ...]


@functools.lru_cache(maxsize=1024)
def _read(text: str) -> _Module:
    """Read a module's text. Components share modules: each is read once. Raise SyntaxError or ValueError."""
    lines = text.splitlines()
    imports: dict[str, None] = {}
    effects = []
    for node in ast.walk(ast.parse(text)):
        imports |= dict.fromkeys(_imported(node))
        if isinstance(node, ast.Call) and (effect := _effect(node)) and not _waived(lines, node.lineno):
            effects.append((node.lineno, effect, ast.unparse(node.func)))
    return _Module(tuple(imports), tuple(effects))


def _effect(call: ast.Call) -> str:
    dotted = ast.unparse(call.func)
    for name, what in CALLS.items():
        # A plain `register_model(...)` may be the component's own function; an attribute belongs to a library.
        if dotted.endswith(f".{name}") or dotted == name:
            return what
    for keyword in call.keywords:
        constant = keyword.value.value if isinstance(keyword.value, ast.Constant) else True
        if keyword.arg in KEYWORDS and constant not in (False, None):
            return KEYWORDS[keyword.arg]
    return WRITES if _opens_elsewhere(call, dotted) else ""


def _opens_elsewhere(call: ast.Call, dotted: str) -> bool:
    """Return whether the call writes to a path that cannot be an output: open("/mnt/x", "w"),
    Path("/mnt/x").write_text(...)."""
    if dotted == "open" and len(call.args) > 1:
        path, mode = call.args[0], call.args[1]
        writes = isinstance(mode, ast.Constant) and bool(set(str(mode.value)) & set("wax+"))
        return writes and _is_absolute(path)
    if isinstance(call.func, ast.Attribute) and call.func.attr in ("write_text", "write_bytes", "mkdir"):
        path = call.func.value
        return isinstance(path, ast.Call) and bool(path.args) and _is_absolute(path.args[0])
    return False


def _is_absolute(node: ast.expr) -> bool:
    text = node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
    return text.startswith("/") and not text.startswith(("/dev/", "/tmp/"))


def _waived(lines: list[str], number: int) -> bool:
    """Return whether a comment on the line, or directly above it, gives the reason."""
    if WAIVER in lines[number - 1].partition("#")[2]:
        return True
    above = number - 2
    while above >= 0 and lines[above].lstrip().startswith("#"):
        if WAIVER in lines[above]:
            return True
        above -= 1
    return False


def _reachable(subject: Subject) -> Iterator[tuple[Path, _Module]]:
    """Yield the modules of the component that its entries import, directly or indirectly."""
    pending = list(subject.entries)
    seen: set[Path] = set()
    while pending:
        path = pending.pop(0)
        if path.resolve() in seen:
            continue
        seen.add(path.resolve())
        try:
            module = _read(path.read_text(encoding="utf-8"))
        except (SyntaxError, ValueError, OSError):
            continue  # running it reports the error
        yield path, module
        for name in module.imports:
            pending += _modules(name, path, subject)


def _imported(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        base = node.module or ""
        return [base, *(f"{base}.{alias.name}".strip(".") for alias in node.names)]
    return []


def _modules(name: str, importer: Path, subject: Subject) -> Iterator[Path]:
    first, relative = name.partition(".")[0], name.replace(".", "/")
    shared = (steps_parent(),) if first == STEPS else ()
    for folder in (importer.parent, *subject.folders, *shared):
        for base in (folder, folder.parent) if folder.name == first else (folder,):
            for path in (f"{base}/{relative}.py", f"{base}/{relative}/__init__.py"):
                if os.path.isfile(path):
                    yield Path(path)
        if folder.stem == name and os.path.isfile(folder):
            yield folder
