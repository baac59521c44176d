"""`allranks schedules`: run pipelines on a schedule, on this machine or on Azure ML."""

from __future__ import annotations

from allranks.cli.lazy_group import lazy_group

app = lazy_group(
    __name__,
    {
        "run": "Run pipelines on this machine when their schedules fire.",
        "next": "List when schedules fire next, without contacting Azure.",
        "apply": "Create and update the schedules of a workspace.",
        "list": "List the declared schedules and those of a workspace.",
        "enable": "Enable a schedule of an Azure ML workspace.",
        "disable": "Disable a schedule of an Azure ML workspace.",
        "delete": "Delete a schedule of an Azure ML workspace.",
    },
    help="Run pipelines on a schedule, on this machine or on Azure ML.",
)
