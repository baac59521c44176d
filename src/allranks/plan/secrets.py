"""Values of a step's environment variables that no screen should show."""

from __future__ import annotations

import re
from dataclasses import replace

from allranks.plan.graph import Plan, Step, with_steps

MASK = "***"
"""Stands where a secret is."""

_SECRET = re.compile(
    r"(?:^|_)(?:TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIALS?|(?:API|ACCESS|ACCOUNT|PRIVATE|SHARED)?KEY|SAS)(?:_|$)"
    r"|CONNECTION_?STRING",
    re.IGNORECASE,
)


def is_secret(name: str) -> bool:
    """Whether a variable of that name holds a secret: HF_TOKEN and storage_key do, TOKENIZERS_PARALLELISM does not."""
    return _SECRET.search(name) is not None


def without_secrets(plan: Plan) -> Plan:
    """The plan as it may be shown: its steps' secrets are ``***``. The plan that runs has to be the original."""
    return replace(plan, graph=with_steps(plan.graph, _masked))


def _masked(step: Step) -> Step:
    shown = {name: MASK if is_secret(name) else value for name, value in step.environment_variables.items()}
    return replace(step, environment_variables=shown)
