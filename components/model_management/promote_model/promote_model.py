"""Register a challenger if it is better than the champion."""

import os
from argparse import Namespace
from typing import Any

from decision import decide
from lineage import Compared, read, tags

from allranks.runtime import arguments
from allranks_steps.json_files import write_json
from allranks_steps.models.metric import Metric
from allranks_steps.models.registry import newest, register, require_address
from allranks_steps.models.results import report


def promote(args: Namespace) -> dict[str, Any]:
    """Decide, register the challenger if it is promoted, write registration.json and return its content.

    Raise InputError if an input cannot be used, or the registry refuses.
    """
    require_address()
    compared = read(args)
    selection = compared.selection
    promoted, reason = decide(
        Metric(args.metric, args.goal),
        compared.challenger,
        compared.champion,
        margin=args.margin,
        threshold=args.threshold,
        new=None if selection is None else int(selection["new"]),
    )
    version = None
    if promoted:
        version, change = registered(args, compared)
        promoted, reason = not change, change or reason
    content = {
        "name": args.name,
        "version": version,
        "promoted": promoted,
        "reason": reason,
        "metric": args.metric,
        "goal": args.goal,
        "challenger": compared.challenger,
        "champion": compared.champion,
        "champion_version": compared.champion_version,
        "margin": args.margin,
        "threshold": args.threshold,
    }
    if selection is not None:
        content |= {"new_images": selection["new"], "data_version": selection["data_version"]}
    write_json(args.registration / "registration.json", content)
    return content


def registered(args: Namespace, compared: Compared) -> tuple[str | None, str]:
    """Register the challenger with its lineage. Return its version and "".

    If the registry's champion is no longer the one that it was compared with, return None and a message instead.
    """
    current = newest(args.name)
    number = current.number if current else None
    if number == compared.champion_version:
        # The next recurrence reads what it was trained on. A file in the challenger's folder would be the champion's.
        beside = () if args.selection is None else (args.selection / "trained_on.json",)
        return register(args.model, args.name, tags(compared, args), beside=beside), ""
    run = os.environ.get("AZUREML_ROOT_RUN_ID")
    if current and run and current.tags.get("parent_run") == run:
        # An earlier attempt of this step registered it.
        return number, ""
    now = f"version {number} is the champion" if number else "there is no champion"
    return None, f"{now} by now, and was not compared with; the next recurrence compares"


def main() -> None:
    args = arguments()
    result = promote(args)
    became = f"registered as {args.name}, version {result['version']}" if result["version"] else "not registered"
    report(f"{became}: {result['reason']}")


if __name__ == "__main__":
    main()
