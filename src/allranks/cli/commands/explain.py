"""`allranks explain`: explain a problem by its code, or a rule of `allranks check`."""

from __future__ import annotations

from typing import Annotated

from allranks.cli.console import print_result
from allranks.cli.options import JsonOption, argument
from allranks.errors import InputError, Problem, did_you_mean


def explain(
    code: Annotated[str | None, argument("CODE", "The code or rule in a message, such as missing-package.")] = None,
    json: JsonOption = False,
) -> None:
    """Explain a problem by the code or the rule in its message.

    Without a code: list all codes. docs/checks.md lists the rules of `allranks check`.
    """
    from allranks.cli.troubleshooting import explanations, rule_explanations

    known = explanations()
    if code is None:
        width = max(map(len, known))
        lines = [f"{each.code:<{width}}  {each.summary}" for each in known.values()]
        print_result(json, list(known.values()), *lines)
        return
    if code not in known:
        known |= rule_explanations()
    if code not in known:
        fix = did_you_mean(code, known, "list all codes: allranks explain")
        raise InputError(Problem(f"code {code}", "it is unknown", "a code from a message", fix))
    print_result(json, known[code], known[code].text)
