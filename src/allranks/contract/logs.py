"""The names of a job's logs, as Azure ML's studio shows them, below the run's folder.

Sources: azure-ai-ml streams `user_logs/std_log[\\D]*[0]*(?:_ps)?\\.txt` as the first rank's log, so its digits vary;
its test for that has `std_log.txt`, `std_log_process_00.txt` to `_04.txt`, and `std_log_node_00_worker.txt`;
azureml-assets and MONAI's Azure ML tutorial show `std_log_process_0.txt`, and retries are seen under
`user_logs/retry_035/`. The number of digits is not documented. Here it is that of the largest rank, which sorts
logs by rank.
"""

import re
from pathlib import Path

from allranks.contract.launch import Launch, Process
from allranks.contract.produce import processes

FOLDER = "user_logs"

_RETRY = re.compile(r"retry_(\d+)")
_LOG = re.compile(
    r"(?:std_log(?:_process_(\d+)|_node_(\d+)_\w+)?|70_driver_log(?:_(\d+))?|(?:70_)?mpi_log)\.txt"  # 70_: older jobs
)


def numbers_of(path: Path) -> tuple[int, int] | None:
    """Return the attempt and the rank or instance number of a log; None for any other file."""
    log, retry = _LOG.fullmatch(path.name), _RETRY.fullmatch(path.parent.name)
    return log and (int(retry[1]) if retry else 0, int(log[1] or log[2] or log[3] or 0))


def log_name(world_size: int, rank: int, attempt: int = 0) -> str:
    """Return the path of a rank's log. A single rank has the log of a job without a distribution.

    attempt: 0, or the number of the retry, which has its own folder
    """
    if world_size == 1:
        return _path("std_log.txt", attempt)
    return _path(f"std_log_process_{_padded(rank, world_size)}.txt", attempt)


def mpi_log(attempt: int = 0) -> str:
    """Return the path of the log with mpirun's own output."""
    return _path("mpi_log.txt", attempt)


def log_of(launch: Launch, process: Process, attempt: int = 0) -> str:
    """Return the path of a process's log. TensorFlow, and distributions with one process, have special names."""
    started = processes(launch)
    if launch.distribution.type == "tensorflow":
        number = _padded(process.instance_rank, launch.instance_count)
        return _path(f"std_log_node_{number}_{process.role}.txt", attempt)
    if launch.distribution.type != "none" and len(started) == 1:
        return _path("std_log_process_0.txt", attempt)
    return log_name(len(started), process.rank, attempt)


def _path(name: str, attempt: int) -> str:
    return f"{FOLDER}/retry_{attempt:03}/{name}" if attempt else f"{FOLDER}/{name}"


def _padded(number: int, count: int) -> str:
    return str(number).zfill(len(str(count - 1)))
