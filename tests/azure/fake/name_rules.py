"""Which names the service takes.

Sources: the patterns in Azure ML's REST specification (2024-04-01-preview, as Bicep's types of
Microsoft.MachineLearningServices have them), and those of azure-ai-ml 1.35.2 where it has others.
"""

from __future__ import annotations

import re

_ARM = r"[a-zA-Z0-9][a-zA-Z0-9\-_]{0,254}"
_WORDS = "letters, digits, '-' and '_', with a letter or a digit first, at most 255 characters"
_DOTTED_WORDS = "letters, digits, '-', '_' and '.', with a letter or a digit first, at most 255 characters"

RULES = {
    "codes": (_ARM, _WORDS),
    # `_schema/core/fields.py`, PythonFuncNameStr; the length is the specification's
    "components": (r"[a-z][a-z\d_]{0,254}", "lower-case letters, digits and '_', with a letter first"),
    "data": (_ARM, _WORDS),
    # The specification has no dot, but Azure's own environments have, such as acpt-pytorch-2.8-cuda12.6.
    "environments": (r"[a-zA-Z0-9][a-zA-Z0-9\-_.]{0,254}", _DOTTED_WORDS),
    # `_restclient/model_dataplane`, ModelsOperations
    "models": (r"(?![\-_.])[a-zA-Z0-9\-_.]{1,255}(?<!\.)", f"{_DOTTED_WORDS}, no '.' last"),
    "jobs": (_ARM, _WORDS),
    "schedules": (_ARM, _WORDS),
    "computes": (
        r"[a-zA-Z](?![a-zA-Z0-9-]*-\d+$)[a-zA-Z0-9\-]{2,23}",
        "3 to 24 letters, digits and '-', with a letter first and no digits alone after the last '-'",
    ),
    "workspaces": (r"[a-zA-Z0-9][a-zA-Z0-9_-]{2,32}", "3 to 33 letters, digits, '-' and '_'"),
    "registries": (r"[a-zA-Z0-9][a-zA-Z0-9\-_]{2,32}", "3 to 33 letters, digits, '-' and '_'"),
}
"""The pattern of each kind's names, and what it takes in words."""

# `IOConstants.VALID_KEY_PATTERN` in `constants/_component.py`
_PORT = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*(\.[a-zA-Z_][a-zA-Z0-9_]*)*")


def complaint(kind: str, name: str) -> str:
    """What is wrong with a name; "" if nothing is."""
    pattern, words = RULES[kind]
    if re.fullmatch(pattern, name):
        reserved = kind == "environments" and name.lower().startswith("azureml")
        copied = "To alter a curated environment first create a copy of it."
        return f"Environment name can not start with the prefix AzureML. {copied}" if reserved else ""
    return f"The name '{name}' of {kind} is invalid. It may have {words}."


def is_port(name: str) -> bool:
    """Whether an input or an output may have this name."""
    return _PORT.fullmatch(name) is not None
