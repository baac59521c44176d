"""Launch a script as a job, without a file that describes the job."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from allranks.api.run import Run, run


def launch(
    script: str | os.PathLike[str],
    arguments: Sequence[object] = (),
    *,
    layout: str = "",
    distribution: str = "",
    inputs: Mapping[str, str | os.PathLike[str]] | None = None,
    outputs: Sequence[str] = (),
    env: Mapping[str, str] | None = None,
    code: str | os.PathLike[str] | None = None,
    size: str = "",
    environment: str = "",
    **options: Any,
) -> Run:
    """Start a script on this machine as Azure ML would, and return its run without waiting for it.

    script:       a Python file, a shell script, or an executable file
    arguments:    of the script. ``{NAME}`` in one is the path of an input or output. One that no argument names is
                  added as ``--NAME PATH``, unless the script reads AZURE_ML_INPUT_NAME or AZURE_ML_OUTPUT_NAME
    layout:       INSTANCESxPROCESSES, such as ``2x4``; default: 1 instance, with a process for each GPU of `size`
    distribution: pytorch (the default), mpi, torchrun, accelerate, deepspeed, tensorflow or ray
    inputs:       folders and files of data, by name
    outputs:      names of folders that the script writes; their paths are in ``Run.outputs``
    env:          environment variables
    code:         the folder that is copied for the ranks, in which the script is; default: the script's folder
    size:         the Azure size, such as ``ND96asr_v4``
    environment:  ``azureml:NAME:VERSION``, an environment's YAML file, or the name of one that comes with allranks;
                  default: the one that fits the distribution
    options:      of `run`, such as ``retries`` and ``folder``

    Raise InputError, with every problem, if the script cannot run here; nothing is started then.
    """
    from allranks.script_jobs.job import script_job

    job = script_job(
        [os.fspath(script), *map(str, arguments)],
        layout=layout,
        distribution=distribution,
        inputs={name: os.fspath(path) for name, path in (inputs or {}).items()},
        outputs=outputs,
        variables=env,
        code=None if code is None else Path(code),
        size=size,
        environment=environment,
    )
    return run(job, **options)
