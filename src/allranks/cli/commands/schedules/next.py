"""`allranks schedules next`: list when schedules fire next."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from allranks.cli.options import JsonOption, SchedulesArgument

if TYPE_CHECKING:
    from rich.console import Console


def next_(
    amount: Annotated[int, typer.Argument(metavar="N", min=1, help="How many firings of each schedule.")] = 5,
    target: SchedulesArgument = None,
    json: JsonOption = False,
) -> None:
    """List when schedules fire next, without contacting Azure.

    Azure ML schedules only pipelines. For any other job this command prints a warning, and `apply` refuses it.
    """
    from datetime import datetime, timezone
    from itertools import islice

    from allranks.cli.console import console
    from allranks.cli.errors import print_warnings
    from allranks.cli.views.json import to_json
    from allranks.schedules.finding import find_schedules
    from allranks.schedules.firings import firings
    from allranks.sdk.session import session

    now = datetime.now(timezone.utc)
    with session(client=False):
        found = find_schedules(target, of_any_job=True)
        schedules = [
            (declared.schedule, list(islice(firings(declared.schedule.trigger, now, now), amount)))
            for declared in found
        ]
    print_warnings([declared.problem for declared in found if declared.problem])
    if json:
        print(
            to_json(
                [
                    {
                        "name": schedule.name,
                        "declared_in": schedule.where,
                        "time_zone": schedule.trigger.time_zone,
                        "firings": [moment.isoformat() for moment in moments],
                    }
                    for schedule, moments in schedules
                ]
            )
        )
        return
    for schedule, moments in schedules:
        _print_firings(console(), schedule, moments)


def _print_firings(out: Console, schedule: Any, moments: list[Any]) -> None:
    from datetime import timezone

    from allranks.cli.views.schedules import moment as shown
    from allranks.runs.formatting import plain
    from allranks.schedules.triggers import in_words

    zone = schedule.trigger.time_zone
    out.print(plain(f"{schedule.name}  {in_words(schedule.trigger)}, {zone}"), soft_wrap=True)
    for moment in moments:
        out.print(f"  {shown(moment, zone)}   {moment.astimezone(timezone.utc):%Y-%m-%d %H:%M} UTC", soft_wrap=True)
    if not moments:
        out.print("  ended")
