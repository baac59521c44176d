"""The arguments of a step's program, which the spec of its component describes."""

import functools
import math
import os
import re
import shlex
import sys
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from allranks.errors import InputError, Problem, Problems, did_you_mean, raise_any
from allranks.runtime import clean_exit

SPEC = "component.yaml"
SPEC_OPTION = "--spec"

_OPTION = re.compile(r"--\w[\w-]*")
_PORT = re.compile(r"\$\{\{\s*(inputs|outputs)\.([^\s{}]+)\s*}}")
_BOOLEANS = {"true": True, "false": False}
_CONVERSIONS: Mapping[str, tuple[Callable[[str], Any], str]] = {
    "integer": (int, "a whole number"),
    "number": (float, "a number"),
    "boolean": (lambda text: _BOOLEANS[text.lower()], "True or False"),
    "string": (str, "a text"),
}
_DATA = (Path, "a path")


@dataclass(frozen=True)
class _Option:
    """An option of the command.

    label:   name of the input or output in messages
    type:    of the input; the options of outputs are paths
    is_flag: whether the command passes it without a value
    """

    name: str
    label: str
    type: str
    is_required: bool = False
    is_flag: bool = False
    default: str | None = None
    minimum: float = -math.inf
    maximum: float = math.inf
    enum: tuple[Any, ...] = ()

    @property
    def destination(self) -> str:
        return self.name.lstrip("-").replace("-", "_")

    @property
    def expected(self) -> str:
        if self.enum:
            return f"one of {', '.join(map(str, self.enum))}"
        limits = (("at least", self.minimum), ("at most", self.maximum))
        ranges = " and ".join(f"{words} {limit:.15g}" for words, limit in limits if math.isfinite(limit))
        return ", ".join(filter(None, (_CONVERSIONS.get(self.type, _DATA)[1], ranges)))

    def value(self, text: str) -> Any:
        """Convert a text to a value of the input. Raise InputError if it is invalid."""
        convert, _ = _CONVERSIONS.get(self.type, _DATA)
        try:
            value = convert(text)
        except (ValueError, KeyError):
            raise InputError(Problem(self.label, repr(text), self.expected)) from None
        # The comparison is false for NaN.
        in_range = self.type not in ("integer", "number") or self.minimum <= value <= self.maximum
        if not in_range or (self.enum and value not in self.enum):
            raise InputError(Problem(self.label, repr(text) if in_range else text, self.expected))
        return value


def arguments(spec: Path | None = None, argv: Sequence[str] | None = None) -> Namespace:
    """Return the arguments of this program, as the spec of its component describes them.

    spec: the file; None: the one that the option `--spec FILE` names, relative to the folder of this program; without
          the option, `component.yaml` in that folder
    argv: the arguments; None: those of this process

    The options are those of the spec's `command` after the program: `--option ${{inputs.name}}`,
    `--option ${{outputs.name}}`, or with a literal value. The result has the names of the options, with underscores.
    Each value has the type of its input: int, float, bool, str, or a Path for data. Outputs are Paths. An input without
    a value has the spec's default, or None if it is optional.

    Raise InputError with all problems if the arguments do not match the spec, or if the spec cannot be read. Unless
    argv is given, an exception that this program does not catch ends it from then on as `runtime.main` does: it is
    recorded, and an InputError ends it with its message, without a traceback, and with exit code 2.
    """
    if argv is None:
        sys.excepthook = lambda _kind, error, _traceback: clean_exit.leave(clean_exit.record(error))
    file, words = _located(spec, sys.argv[1:] if argv is None else argv)
    options = _options(file)
    problems = Problems()
    values = _defaults(options)
    missing = {name: option for name, option in options.items() if option.is_required}
    waiting = list(words)
    while waiting:
        name, has_value, text = waiting.pop(0).partition("=")
        option = options.get(name)
        if option is None:
            problems.append(_unknown(name, file, options))
            if _OPTION.fullmatch(name) and not has_value and waiting and waiting[0] not in options:
                waiting.pop(0)  # its value
            continue
        missing.pop(name, None)
        if option.is_flag:
            text = "True"
        elif not has_value:
            if not waiting or (option.type != "string" and waiting[0] in options):
                problems.append(Problem(option.label, f"no value after {name}", option.expected))
                continue
            text = waiting.pop(0)
        with problems:
            values[option.destination] = option.value(text)
    problems += [Problem(each.label, f"{each.name} is missing", each.expected) for each in missing.values()]
    raise_any(problems)
    return Namespace(**values)


def argument_defaults(spec: Path | None = None) -> Mapping[str, Any]:
    """Return the default of each argument by its name in `arguments()`; None if it has none.

    Raise InputError if the spec cannot be read, or a default is not a value of its input.
    """
    file, _ = _located(spec, sys.argv[1:])
    return _defaults(_options(file))


def _unknown(word: str, spec: Path, options: Mapping[str, _Option]) -> Problem:
    fix = did_you_mean(word, options, f"remove it, or add it to the command of {spec.name}")
    return Problem("the program's arguments", f"{word!r} is unknown", f"an option of the command in {spec}", fix)


def _located(spec: Path | None, argv: Sequence[str]) -> tuple[Path, list[str]]:
    """Return the spec, and the arguments without the option that names it."""
    program = getattr(sys.modules["__main__"], "__file__", None) or sys.argv[0]
    folder, words, name = Path(os.path.abspath(program)).parent, list(argv), SPEC
    if SPEC_OPTION in words:
        index = words.index(SPEC_OPTION)
        name = "".join(words[index + 1 : index + 2])
        del words[index : index + 2]
    return spec or folder / name, words


def _defaults(options: Mapping[str, _Option]) -> dict[str, Any]:
    return {each.destination: None if each.default is None else each.value(each.default) for each in options.values()}


@functools.lru_cache(maxsize=4)
def _options(spec: Path) -> Mapping[str, _Option]:
    """Return the options of the spec's command by name. Raise InputError if the spec cannot be read."""
    document = _read(spec)
    # The lexer of shells needs no spaces within a reference, and does not know optional parts.
    command = _PORT.sub(r"${{\1.\2}}", document["command"].replace("$[[", " ").replace("]]", " "))
    words: list[str] = []
    for word in shlex.split(command):
        words += word.split("=", 1) if _OPTION.match(word) else [word]
    # The options before the program are those of its launcher.
    program = next((index for index, word in enumerate(words) if word.endswith(".py")), 0)
    options: dict[str, _Option] = {}
    for name, value in pairwise([*words[program:], "--end"]):
        if _OPTION.fullmatch(name) and name != SPEC_OPTION and name not in options:
            options[name] = _option(name, value, document)
    return options


def _option(name: str, value: str, document: Mapping[str, Any]) -> _Option:
    port = _PORT.fullmatch(value)
    if port is None:
        if _OPTION.fullmatch(value):
            return _Option(name, f"option {name}", "boolean", is_flag=True, default="False")
        return _Option(name, f"option {name}", "string", default=value)
    label = f"{port[1][:-1]} {port[2]}"
    if port[1] == "outputs":
        return _Option(name, label, "output", is_required=True)
    described = (document.get("inputs") or {}).get(port[2], "string")
    settings: dict[str, Any] = described if isinstance(described, dict) else {"type": described}
    settings = {key: value for key, value in settings.items() if value is not None}
    kind = str(settings.get("type", "string")).lower()
    unlimited, default = _Option(name, label, kind), settings.get("default")
    return _Option(
        name,
        label,
        kind,
        is_required=default is None and str(settings.get("optional")).lower() != "true",
        default=None if default is None else str(default),
        minimum=float(settings.get("min", -math.inf)),
        maximum=float(settings.get("max", math.inf)),
        enum=tuple(unlimited.value(str(each)) for each in settings.get("enum", ())),
    )


def _read(spec: Path) -> dict[str, Any]:
    """Read a spec. Raise InputError if the file is not the spec of a component with a command."""
    try:
        import yaml  # an environment without it gets a message
    except ImportError:
        found = f"no PyYAML, which reads {spec.name}"
        raise InputError(Problem("environment", found, "the package pyyaml", "add pyyaml to the environment")) from None
    try:
        document = yaml.load(spec.read_bytes(), getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except (OSError, yaml.YAMLError) as error:
        reason = " ".join(str(error).split())
        fix = f"put {SPEC} beside the program, or name it after the program: {SPEC_OPTION} FILE"
        raise InputError(Problem(str(spec), reason, "the spec of this program's component", fix)) from None
    if not isinstance(document, dict) or not isinstance(document.get("command"), str):
        raise InputError(Problem(str(spec), "it has no command", "the spec of a command component"))
    return document
