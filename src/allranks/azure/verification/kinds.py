"""The kinds of facts that are compared, in the order of their importance, and what a difference in each means."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Kind:
    """A kind of fact.

    title:       its heading in the report
    meaning:     what a difference means for somebody who runs a job
    is_platform: whether the platform decides it; else the image or the machine does, and a difference is no failure
    """

    title: str
    meaning: str
    is_platform: bool = True


KINDS = {
    "ranks": Kind(
        "Number of processes",
        "Azure ML starts other processes than the local engine. A job has another world size than it had locally.",
    ),
    "rank": Kind(
        "Ranks, as a program reads them",
        "The runtime reads another place in the job. Collectives can hang, or each instance trains alone.",
    ),
    "variable": Kind(
        "Variables",
        "A program that reads the variable behaves differently. One that is absent on Azure ML need not be emulated; a "
        "program that needs one that is absent locally cannot be tried locally.",
    ),
    "argument": Kind("Arguments", "The command's template or its shell gives a program another text."),
    "instance": Kind(
        "Names of instances", "A program that connects to another instance by this name or address gets another result."
    ),
    "path": Kind("Paths", "A program finds another kind of path, or can write where it could not, or the reverse."),
    "mount": Kind(
        "Mounts", "The file system differs: its speed, its room, and which operations it has (links, locks, renaming)."
    ),
    "user": Kind("User", "Files belong to another user, or a program that needs root or a home fails."),
    "limit": Kind("Limits", "A program that needs many files, locked memory (RDMA) or a large stack can fail."),
    "process": Kind("Process", "Signals, new files' permissions or standard input behave differently."),
    "image": Kind(
        "Image", "The image has another version than this machine. Azure ML does not decide it.", is_platform=False
    ),
    "machine": Kind("Machine", "The instances are other machines than this one.", is_platform=False),
}
"""Every kind by its name in `Fact`, the most important first."""
