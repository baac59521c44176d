"""Mask secrets, and names that identify a workspace, a machine or a person, in the published results."""

import re
from collections.abc import Iterable, Mapping

from allranks.history.records import RunRecord
from allranks.secrets import redact

SHORTEST = 3
"""Minimum length of a name that is masked wherever it occurs: shorter ones, such as a rank, occur by chance."""

_MAIL = re.compile(r"(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63})+")
_AZURE = "azure|azurecr|azureml|windows|microsoft|cloudapp"
_SHAPES = tuple(
    (re.compile(pattern), shown)
    for pattern, shown in (
        (r"(?i)(?<=/subscriptions/)[^/\s\"'<>]+", "<subscription>"),
        (r"(?i)(?<=/resourcegroups/)[^/\s\"'<>]+", "<resource group>"),
        (r"(?i)(?<=/workspaces/)[^/\s\"'<>]+", "<workspace>"),
        (r"(?i)(?<=/storageaccounts/)[^/\s\"'<>]+", "<storage account>"),
        (r"(?i)(?<![0-9a-z])[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}(?![0-9a-z])", "<id>"),
        # Hosts of Azure's clouds have the account's, the registry's or the region's name.
        (
            rf"(?i)(?<![\w.-])[\w-]{{1,63}}(?:\.[\w-]{{1,63}}){{0,9}}?\.(?:{_AZURE})[\w.-]*",
            "<host of Azure>",
        ),
        # Batch's names of the nodes of a pool.
        (r"(?i)\btvm(?:ps)?_[0-9a-z_]{8,}\b", "<node>"),
        (r"\b(?!127\.0\.0\.1\b|0\.0\.0\.0\b)(?:\d{1,3}\.){3}\d{1,3}\b", "<an address>"),
        (r"(?i)(?<![0-9a-z])(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{16,}(?![0-9a-z])", "<hex>"),
        (r"(?<=/home/)[^/\s\"'<>]+|(?<=/Users/)[^/\s\"'<>]+", "<user>"),
    )
)


def anonymous(text: str, names: Mapping[str, str] | None = None) -> str:
    """Return the text with placeholders in place of names, ids, addresses and secrets.

    names: placeholders by the name that they replace, in the order in which names are replaced
    """
    text = _MAIL.sub("<e-mail>", text)  # first, because a name may be part of it
    for name, placeholder in (names or {}).items():
        text = re.sub(rf"(?<![\w.-]){re.escape(name)}(?![\w-])", f"<{placeholder}>", text)
    for pattern, shown in _SHAPES:
        text = pattern.sub(shown, text)
    return redact(text)


def names_of(run: RunRecord, hosts: Iterable[str] = ()) -> dict[str, str]:
    """Return the names of a submitted run, its workspace and its instances, each with its placeholder."""
    found = dict.fromkeys(hosts, "host") | {run.id: "run id"}
    if (where := run.submitted) is not None:
        found |= {
            where.subscription_id: "subscription",
            where.resource_group: "resource group",
            where.workspace_name: "workspace",
        }
    return longest_first(found)


def longest_first(names: Mapping[str, str]) -> dict[str, str]:
    """Return the names that are long enough, the longest first, because one may be part of another."""
    return {name: names[name] for name in sorted(names, key=len, reverse=True) if len(name) >= SHORTEST}


def describe(value: str) -> str:
    """Return the value of a variable if it cannot identify anybody, otherwise a description of the value."""
    if re.fullmatch(r"-?\d{1,6}(?:\.\d+)?|(?i:true|false)|(?:<[\w ]+>[,;:/]?)+|\*\*\*|", value):
        return value
    if re.match(r"[\[{]", value):
        return "(JSON)"
    if match := re.match(r"(/[a-z]+)(?:/|$)", value):
        return f"(a path below {match[1]})"
    return "(an address)" if "://" in value else "(a text)"
