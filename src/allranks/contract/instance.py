"""The variables that describe the instance of a process, with or without a distribution."""

from __future__ import annotations

from collections.abc import Mapping

from allranks.contract import variables
from allranks.contract.launch import Launch, Process

BATCH_PORT = 6000
"""The port in AZ_BATCH_MASTER_NODE. Azure Batch uses it itself, so ranks must not connect there."""


def environment(launch: Launch, process: Process) -> dict[str, str]:
    """Return the variables of an instance: its number, the number of instances, and Azure Batch's lists if there are
    several.

    Sources: Azure Batch's "compute node environment variables" (AZ_BATCH_*, set only for a job with several instances;
    Lightning#14118), and azureml-assets and azureml-examples (AZUREML_*, AZ_BATCHAI_TASK_INDEX).
    """
    values = {
        "AZUREML_NODE_COUNT": str(launch.instance_count),
        "AZUREML_CR_NODE_RANK": str(process.instance_rank),
        "AZUREML_PROCESS_NAME": f"rank_{process.rank}",
        "AZ_BATCHAI_TASK_INDEX": str(process.instance_rank),
    }
    if launch.instance_count > 1:
        values |= {
            "AZ_BATCH_MASTER_NODE": f"{launch.addresses[0]}:{BATCH_PORT}",
            "AZ_BATCH_HOST_LIST": ",".join(launch.addresses),
            "AZ_BATCH_NODE_LIST": ";".join(launch.addresses),
            "AZ_BATCH_IS_CURRENT_NODE_MASTER": "true" if process.instance_rank == 0 else "false",
        }
    return values


def read(environ: Mapping[str, str]) -> tuple[int, int] | None:
    """Return the instance's number and the number of instances; None outside Azure ML.

    Raise InputError if only one of them is set, or they contradict each other.
    """
    if (
        variables.text(environ, "AZUREML_NODE_COUNT") is None
        and variables.text(environ, "AZUREML_CR_NODE_RANK") is None
    ):
        return None
    count = variables.integer(environ, "AZUREML_NODE_COUNT", minimum=1)
    return variables.integer(environ, "AZUREML_CR_NODE_RANK", below=count), count
