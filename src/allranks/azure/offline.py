"""Dry runs without Azure: whose state they compare with, and when that state was seen."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import TypeVar

from allranks.azure.dry_run import NO_WORKSPACE
from allranks.azure.errors import SignInError, UnreachableError
from allranks.azure.workspace import WorkspaceName, WorkspaceOptions, named

T = TypeVar("T")


def where_of(options: WorkspaceOptions) -> str:
    """Return the full name of the registry or the workspace, with placeholders for parts that are not given, under
    which its state is saved. Raise InputError for an invalid name or file."""
    return f"registry {options.registry_name}" if options.registry_name else workspace_of(options).arm_id


def workspace_of(options: WorkspaceOptions) -> WorkspaceName:
    """Return the workspace that the options name, with placeholders for parts that are not given. Raise InputError for
    an invalid name or file."""
    known = named(options)
    return WorkspaceName(
        known.subscription_id or NO_WORKSPACE.subscription_id,
        known.resource_group or NO_WORKSPACE.resource_group,
        known.workspace_name or NO_WORKSPACE.workspace_name,
    )


def online_or_offline(online: Callable[[], T], offline: Callable[[str], T], *, only_offline: bool) -> T:
    """Return the result of `online`; if Azure cannot be reached or nobody is signed in, that of `offline`.

    only_offline: whether not to contact Azure at all
    offline:      receives the reason why Azure is not contacted: a sentence, or "" if that was requested
    """
    if only_offline:
        return offline("")
    try:
        return online()
    except UnreachableError as error:
        reason = error.problem.found
    except SignInError as error:
        reason = error.problems[0].found
    return offline(reason)


def compared_with(times: Iterable[float], what: str) -> str:
    """Return the sentence on what a dry run was compared with.

    times: when each answer was known, in seconds since the epoch
    what:  what is compared, such as "schedules"
    """
    known = [moment for moment in times if moment]
    if not known:
        return f"no {what} of this workspace are known; Azure was not contacted, and everything would be new"
    day = time.strftime("%Y-%m-%d %H:%M", time.localtime(min(known)))
    return f"compared with the state of {day}; Azure was not contacted"
