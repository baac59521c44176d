"""Explain what azure-ai-ml says of mistakes in a pipeline function: what was found, what was expected, and the fix."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from allranks.errors import Problem, did_you_mean

_NAMES = "lower-case letters, digits and _, beginning with a letter or _"
_UNKNOWN = "values that are known while the function makes the pipeline"
_DECIDE = (
    "decide while the pipeline runs, with condition of mldesigner.dsl, or make it a value of Python: "
    '@dsl.pipeline(non_pipeline_inputs=["NAME"])'
)

_SENTENCES = (
    (r"unexpected attribute '(?P<name>.*?)'.*?: (?P<known>.*)\.", "there is no output {name}", "one of {known}",
     "{near}"),
    (r"unexpected attribute '(?P<name>.*?)'", "there is no output {name}", "a step with outputs", "remove it"),
    (r"unexpected keyword argument '(?P<name>.*?)', valid keywords: (?P<known>.*)\.", "there is no input {name}",
     "one of {known}", "{near}"),
    (r"positional arguments, got .* for (?P<name>\w+)\..*component_func\((?P<known>.*)\)",
     "{name} is called with arguments that have no names", "named arguments", "write {name}({known})"),
    (r"only path input is supported now but get .*?: (?P<name>.*)\.", "{name} is bound to an input of data",
     "an Input with type and path, an input of the pipeline, or an output of a step",
     "write Input(type=TYPE, path=PATH)"),
    (r"Exactly 1 output is required, got (?P<count>\d+)\. \((?P<known>.*)\)", "a step with {count} outputs",
     "one output: {known}", "write .outputs.NAME"),
    (r"Invalid node name found: '(?P<name>.*?)'", "'{name}' cannot be the name of a step", _NAMES,
     "rename it: {valid}"),
    (r"Duplicate node name .* node name: '(?P<name>.*?)'", "two steps have the name {name}",
     "names that differ in more than case", "rename one"),
    (r"Defining component '(?P<name>.*?)' failed: Name is not valid", "'{name}' cannot be the name of a component",
     _NAMES, "rename it: {valid}"),
    (r"^(?:in|out)puts\.(?P<name>\w+)\.(?P<key>\w+): Unknown field", "the component declares {key} of {name}",
     "what is the same in each use, such as type and mode", "set {key} where the component is used"),
    (r"^(?!expected:)(?P<name>[\w.]+): (?P<known>(?:one of|a) .*)$", "azure-ai-ml refuses {name}", "{known}", ""),
    (r"return type of dsl.pipeline", "the function returns something else than a dictionary of outputs",
     "names with outputs of steps", 'write return {{"NAME": STEP.outputs.OUTPUT}}'),
    (r"unsupported sampling algorithm: (?P<name>\w+)", "sampling algorithm '{name}'", "one of random, grid, bayesian",
     ""),
    (r"\bNodeOutput\b", "the function reads the value of a step's output, which the run makes", _UNKNOWN, _DECIDE),
    (r"\bPipeline(?:Input|Expression)\b",
     "the function reads the value of an input of the pipeline, which each run sets", _UNKNOWN, _DECIDE),
)  # fmt: skip
"""A pattern of the SDK's message, and what was found, what was expected and the fix, with the pattern's groups."""


def explained(problem: Problem, error: BaseException, file: Path) -> Problem:
    """Return the problem with an explanation if azure-ai-ml's sentence is known. file: the user's"""
    known = _keys(error)
    if isinstance(error, KeyError) and known:
        name = str(error.args[0])
        fix = did_you_mean(name, known, "remove it")
        return replace(problem, found=f"there is no input {name}", expected=f"one of {', '.join(known)}", fix=fix)
    for pattern, found, expected, fix in _SENTENCES:
        match = re.search(pattern, problem.found) or re.search(pattern, " ".join(str(error).split()))
        if match is None:
            continue
        words = match.groupdict()
        names = re.findall(r"'(\w+)'", words.get("known") or "") or [words.get("known") or ""]
        name = words.get("name") or ""
        valid = re.sub(r"\W", "_", name, flags=re.ASCII).lower()
        words |= {"known": ", ".join(names), "near": did_you_mean(name, names, "remove it"), "valid": valid}
        found, expected, fix = (part.format_map(words) for part in (found, expected, fix))
        return replace(problem, where=_place(problem.where, file, name), found=found, expected=expected, fix=fix)
    return problem


def _keys(error: BaseException) -> list[str]:
    """Return the names of the inputs in which the SDK looked in vain."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    owner = trace.tb_frame.f_locals.get("self") if trace else None
    is_inputs = isinstance(owner, dict) and type(owner).__module__.startswith("azure.ai.ml")
    return [str(name) for name in owner or ()] if is_inputs else []


def _place(where: str, file: Path, name: str) -> str:
    """Return the line that names a step, if the SDK has complained of it after the function had returned."""
    if ":" in where or file.suffix != ".py" or not name:
        return where
    lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
    naming = rf"^\s*{re.escape(name)}\s*=|=\s*[\"']{re.escape(name)}[\"']"
    for flag in (0, re.IGNORECASE):  # the SDK writes a name that was set in lower case
        for number, text in enumerate(lines, 1):
            if re.search(naming, text, flag):
                return f"{where}:{number}"
    return where
