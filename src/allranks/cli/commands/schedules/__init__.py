"""`allranks schedules`: pipelines that run when they are due, on this machine and on Azure ML."""

from __future__ import annotations

from allranks.cli.lazy_group import lazy_group

app = lazy_group(
    __name__,
    {
        "run": "Fire schedules on this machine until it is stopped.",
        "next": "List when schedules fire next, without asking anybody.",
        "apply": "Make a workspace's schedules what is declared.",
        "list": "List schedules: declared ones, and a workspace's.",
        "enable": "Let a schedule of an Azure ML workspace fire again.",
        "disable": "Keep a schedule of an Azure ML workspace from firing.",
        "delete": "Delete a schedule of an Azure ML workspace.",
    },
    help="Run pipelines when they are due: here, or on Azure ML.",
)
