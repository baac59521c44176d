"""A pipeline component is held to no rule about commands and environments."""

from pathlib import Path

from allranks.checks.component import of_subject
from allranks.checks.component.subject import read_yaml as read
from pipeline_files import write


def test_it_has_no_command_and_no_environment(tmp_path: Path) -> None:
    component = """
        type: pipeline
        name: tune
        version: 1.0.0
        display_name: Tune
        description: Trains on the data, and returns the model.
        tags: {task: training}
        inputs: {lr: {type: number, default: 0.1, description: The learning rate.}}
        jobs: {}
        """
    path = write(tmp_path, "tune.yml", component)
    found = {finding.found for finding in of_subject(read(path))}
    path.write_text(path.read_text().replace("type: pipeline", "type: command").replace("jobs: {}\n", ""))
    more = {finding.found for finding in of_subject(read(path))}
    assert "no environment" in more - found
    assert not any(word in text for text in found for word in ("environment", "deterministic", "command", "read"))
