"""Find known signatures of failures in exceptions and logs. The table is signatures.yaml.

To add a signature, add a row, and for a new code a section of docs/reference/troubleshooting.md.
"""

import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from allranks.contract import report
from allranks.sdk import bounded_yaml


@dataclass(frozen=True)
class Signature:
    """A known failure, as signatures.yaml describes it."""

    code: str
    pattern: re.Pattern[str]
    advice: str
    source: str
    within: str = ""
    isolated: bool | None = None
    depth: int = 0


@dataclass(frozen=True)
class Known:
    """A signature that was found, and its match in a line."""

    signature: Signature
    match: re.Match[str]


def find(lines: Iterable[str], *, isolated: bool | None = None, traceback: str = "") -> Known | None:
    """Return the first signature of the table that one of the lines has.

    isolated:  whether the instances have a network of their own; None if it is not known
    traceback: of the exception that is the only line
    """
    texts = list(lines)
    rows = (row for row in table() if row.isolated in (None, isolated) and re.search(row.within, traceback))
    return next((Known(row, match) for row in rows for text in texts if (match := row.pattern.search(text))), None)


def depth(text: str) -> int:
    """Return the `Signature.depth` of an exception; 0 for one without a signature."""
    known = find([text])
    return 0 if known is None else known.signature.depth


FAILED_TO_PASS = re.compile(r"Ranks? (?P<rank>\d+)(?:, \d+)* failed to pass monitoredBarrier in \d+ ms")
"""The message of rank 0 about ranks that did not arrive."""

GLOO_ABORT = "terminate called without an active exception"
"""Printed by libstdc++ if torch's gloo threads still exist while the interpreter shuts down (seen with torch 2.13)."""

NO_NETWORK = "no-network"
MISSING_PACKAGE = "missing-package"
READ_ONLY = "read-only-input"

NOT_STARTED = "did not start"
"""Part of the reason of a verdict about an instance."""

KERNEL_OUT_OF_MEMORY = "killed by the kernel: out of memory"
"""The reason of a verdict on a rank that the kernel killed."""

_PATTERNS = {
    "<launch variable>": r"(?:LOCAL_|NODE_)?RANK|(?:LOCAL_)?WORLD_SIZE|MASTER_(?:ADDR|PORT)|TF_CONFIG"
    r"|OMPI_COMM_WORLD_\w+",
    "<module of the standard library>": "|".join(sys.stdlib_module_names),
    "<full disk>": report.FULL_DISK.pattern,
}


@cache
def table() -> tuple[Signature, ...]:
    """Return the rows of signatures.yaml, in order."""
    rows = []
    for row in bounded_yaml.load_file(Path(__file__).with_suffix(".yaml")):
        pattern = "|".join(row.pop("patterns"))
        for name, value in _PATTERNS.items():
            pattern = pattern.replace(name, value)
        rows.append(Signature(pattern=re.compile(pattern), **row))
    return tuple(rows)
