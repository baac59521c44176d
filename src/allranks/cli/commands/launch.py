"""`allranks launch`: run a script as Azure ML would."""

from pathlib import Path
from typing import Annotated

from allranks.cli.completion import complete_sizes
from allranks.cli.console import errors, print_result
from allranks.cli.execute import execute_job
from allranks.cli.options import DryRunOption, FolderOption, JsonOption, RunOptions, SampleOption, StreamedRankOption
from allranks.cli.parameters import argument, option
from allranks.cli.values import settings_of, streamed
from allranks.cli.views.plan import print_dry_run
from allranks.history import registered
from allranks.project.script_job import ScriptJob, script_job
from allranks.project.script_plan import emit, plan_of, uploads_of
from allranks.workspace import Workspace

SETTINGS = {"allow_interspersed_args": False}
"""Options after the script belong to the script."""

_COMMAND = """The script and its own arguments, even if they look like options of this command. A launcher may be in
front: torchrun, accelerate launch, deepspeed, mpirun."""
_LAYOUT = """N instances with M processes each, or M on one. Default: the launcher's, or 1 instance with a process for
each GPU of the size."""
_DISTRIBUTION = "How the processes start. Default: the launcher's, or pytorch."
_INPUT = """Folder or file of data. Its path replaces {NAME} in the script's arguments, else it is added as --NAME PATH,
unless the script reads AZURE_ML_INPUT_NAME. May be repeated."""
_OUTPUT = "Folder that the script writes. The script gets its path in the same way. May be repeated."
_CODE = "Folder that the ranks get, with the script in it. Default: the script's folder."
_ENVIRONMENT = """Registered environment, an environment's YAML file, or the name of one that comes with allranks.
Default: the one that fits the distribution."""
_EMIT = "Write the job for Azure ML as YAML, without running it."


# Over 60 lines: its options are half of it.
def launch(
    command: Annotated[list[str] | None, argument("SCRIPT [ARGUMENT]", _COMMAND)] = None,
    layout: Annotated[str, option("--layout -j", _LAYOUT, "NxM|M")] = "",
    distribution: Annotated[
        str, option("--distribution", _DISTRIBUTION, "pytorch|mpi|torchrun|accelerate|deepspeed|tensorflow|ray")
    ] = "",
    inputs: Annotated[list[str] | None, option("--input", _INPUT, "NAME=PATH")] = None,
    outputs: Annotated[list[str] | None, option("--output", _OUTPUT, "NAME")] = None,
    variables: Annotated[
        list[str] | None, option("--env", "Set a variable of the ranks. May be repeated.", "NAME=VALUE")
    ] = None,
    code: Annotated[Path | None, option("--code", _CODE, "DIR")] = None,
    size: Annotated[
        str, option("--size", "Azure size, such as ND96asr_v4.", "SIZE", autocompletion=complete_sizes)
    ] = "",
    environment: Annotated[str, option("--environment", _ENVIRONMENT, "azureml:...|FILE|NAME")] = "",
    emit: Annotated[Path | None, option("--emit", _EMIT, "FILE")] = None,
    sample: SampleOption = "",
    dry_run: DryRunOption = False,
    *,
    rank: StreamedRankOption = "0",
    quiet: Annotated[bool, option("--quiet", "Do not print what the script prints.")] = False,
    execution: RunOptions,
    folder: FolderOption = None,
    json: JsonOption = False,
) -> None:
    """Run a script on this machine as Azure ML would.

    For example: allranks launch -j 2x4 train.py --epochs 3

    A command with a launcher can be pasted: allranks launch -- torchrun --nnodes 2 --nproc-per-node 4 train.py
    """

    def job() -> ScriptJob:
        made = script_job(
            command or [],
            layout=layout,
            distribution=distribution,
            inputs=settings_of(inputs, option="--input", example="data=my/folder"),
            outputs=outputs or [],
            variables=settings_of(variables, option="--env", example="NCCL_DEBUG=INFO"),
            code=code,
            size=size,
            environment=environment,
        )
        if made.dropped:
            errors().print("ignored, because Azure ML sets it:", ", ".join(made.dropped), soft_wrap=True)
        return made

    workspace = Workspace.at(folder)
    if emit is not None:
        _emit(job(), emit, json)
    elif dry_run:
        made = job()
        print_dry_run(
            lambda snapshots: (plan_of(made, snapshots, registered.of(workspace)), uploads_of(made)),
            workspace,
            execution.options(),
            json,
        )
    else:
        stream = "" if quiet else streamed(rank)
        execute_job(job, workspace, execution.options(sample=sample), json, verbose=execution.verbose, stream=stream)


def _emit(job: ScriptJob, file: Path, json: bool) -> None:
    written = emit(job, file)
    lines = [f"{file}: written"]
    if len(written) > 1:
        folder = file.parent.joinpath(*Path(min(written, key=lambda name: name == file.name)).parts[:2])
        lines.append(f"{folder}: copied from allranks, for the image")
    lines += [f"  az ml job create --file {file}", f"  allranks submit {file}", f"  allranks run {file}"]
    print_result(json, {"folder": str(file.parent), "written": written}, *lines)
