"""Code that a workspace, a registry or a Git repository has is an unresolved name, which allranks.yaml maps."""

import json
from pathlib import Path

import pytest

from allranks.errors import InputError, Level
from pipeline_files import read, write

ARM = "/subscriptions/S/resourceGroups/G/providers/Microsoft.MachineLearningServices/workspaces/W/codes/main/versions/3"
IDS = {
    "azureml:main:3": "main:3",
    f"azureml:{ARM}": "main:3",
    "git+https://github.com/OWNER/NAME#branch:sub/folder": "git+https://github.com/OWNER/NAME#branch:sub/folder",
}
"""Codes, each with its key in allranks.yaml."""

RUN = "  command: python main.py\n  environment: azureml:e:1\n"
TRIAL = (
    "sampling_algorithm: random\nobjective: {goal: minimize, primary_metric: loss}\nlimits: {max_total_trials: 1}\n"
    "search_space: {lr: {type: choice, values: [1]}}\n"
)
COMPONENT = "type: command\nname: own\nversion: '1'\ncommand: python main.py\nenvironment: azureml:e:1\ncode: CODE\n"


def nested(text: str) -> str:
    return "type: pipeline\nsettings: {default_compute: azureml:c}\njobs:\n  step:\n" + "".join(
        f"    {line}\n" for line in text.splitlines()
    )


JOBS = {
    "command": f"type: command\ncode: CODE\n{RUN}".replace("\n  ", "\n"),
    "sweep": f"type: sweep\ncompute: azureml:c\ntrial:\n  code: CODE\n{RUN}{TRIAL}",
    "step": nested(f"type: command\ncode: CODE\n{RUN}".replace("\n  ", "\n")),
    "sweep in a pipeline": nested(f"type: sweep\ntrial:\n  type: command\n  code: CODE\n{RUN}{TRIAL}"),
    "parallel": nested(
        "type: parallel\ninputs: {data: {type: uri_folder, path: .}}\ninput_data: ${{inputs.data}}\n"
        "mini_batch_size: '1'\ntask:\n  type: run_function\n  entry_script: main.py\n  environment: azureml:e:1\n"
        "  code: CODE\n"
    ),
    "component": nested("type: command\ncomponent: ./own.yml\n"),
}
CASES = [*((name, next(iter(IDS))) for name in JOBS), *(("component", code) for code in IDS)]


def written(folder: Path, job: str, code: str) -> tuple[Path, str]:
    """Write a job, and return its file, and the line that names the code as file:line."""
    for name, text in (("own.yml", COMPONENT), ("job.yml", JOBS[job])):
        write(folder, name, text.replace("CODE", json.dumps(code)))
    file = "own.yml" if job == "component" else "job.yml"
    lines = (folder / file).read_text().splitlines()
    return folder / "job.yml", f"{file}:{next(n for n, line in enumerate(lines, 1) if 'code:' in line)}"


@pytest.mark.parametrize(("job", "code"), CASES)
def test_the_message_has_its_line_and_the_line_that_maps_it_to_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, job: str, code: str
) -> None:
    monkeypatch.chdir(tmp_path)
    file, line = written(tmp_path, job, code)
    with pytest.raises(InputError) as caught:
        read(file)
    (problem,) = caught.value.problems
    assert (problem.level, problem.code) == (Level.MACHINE, "unresolved-name")
    assert problem.where.endswith(f"key code ({line})")
    assert f"code:\n  {IDS[code]}: path/to/folder" in problem.fix
    write(tmp_path, "local/main.py", "print('mapped')")
    write(tmp_path, "allranks.yaml", f"code:\n  {json.dumps(IDS[code])}: local\n")
    (node,) = read(file).graph.nodes
    snapshot = getattr(node, "body", node).code
    assert [path.name for path in Path(snapshot.folder).iterdir()] == ["main.py"]
