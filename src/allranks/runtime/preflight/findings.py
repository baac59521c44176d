"""Report the findings, once for all ranks."""

import json
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from allranks.contract.rank_env import RankEnv

OK = "ok"
WARNING = "warning"
FAILED = "FAILED"


@dataclass(frozen=True)
class Finding:
    """The outcome of one check, for one rank or for all of them.

    check:    name of the check, one word
    state:    "ok", "warning" (the training continues) or "FAILED" (the training does not start)
    found:    what was found, in one line
    expected: what was expected, if the state is not "ok"
    fix:      recommended action, if any
    instance, rank: affected instance and rank; None for all
    """

    check: str
    state: str
    found: str
    expected: str = ""
    fix: str = ""
    instance: int | None = None
    rank: int | None = None

    @property
    def who(self) -> str:
        """ "instance 1, rank 2", "instance 1", or "" for all."""
        parts = [f"{name} {number}" for name, number in (("instance", self.instance), ("rank", self.rank))]
        return ", ".join(part for part in parts if not part.endswith("None"))


REPORT_VARIABLE = "ALLRANKS_PREFLIGHT_REPORT"
"""Path of a JSON file to which rank 0 writes the findings, also if a check failed."""


def print_findings(env: RankEnv, seconds: float, findings: Sequence[Finding]) -> None:
    """Print one line to stderr if all checks are ok, else a table. Write the report if one is requested.

    seconds: duration of the checks
    """
    report = os.environ.get(REPORT_VARIABLE)
    if report:
        record = {
            "world_size": env.world_size,
            "instance_count": env.instance_count,
            "seconds": round(seconds, 3),
            "findings": [asdict(finding) for finding in findings],
        }
        Path(report).write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    instances = f"{env.instance_count} instance{'s' * (env.instance_count != 1)}"
    title = f"preflight: {env.world_size} ranks on {instances}, {seconds:.2f} s"
    if all(finding.state == OK for finding in findings):
        print(f"allranks: {title}: {len(findings)} checks, all well", file=sys.stderr, flush=True)
    else:
        print(table(title, findings), file=sys.stderr, flush=True)


def table(title: str, findings: Sequence[Finding]) -> str:
    """Return a line for each finding. Unless it is "ok", two more lines have what was expected, and the fix."""
    lines = [title]
    for finding in findings:
        who = f"{finding.who}: " if finding.who else ""
        lines.append(f"  {finding.check:<11} {finding.state:<8} {who}{finding.found}")
        if finding.state != OK:
            lines.append(f"  {'':<20} expected: {finding.expected}")
            lines.append(f"  {'':<20} fix: {finding.fix}")
    return "\n".join(lines)
