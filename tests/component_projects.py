"""A project with one component and its environment, small and right, to be spoilt by tests."""

from pathlib import Path

YAML = """\
$schema: https://azuremlschemas.azureedge.net/latest/commandComponent.schema.json
type: command
name: greet
version: "1.2.0"
display_name: Greet people
description: Greets everybody in a file, as often as it is told.
tags:
  task: greeting
is_deterministic: true
inputs:
  people:
    type: uri_file
    description: Names, one a line.
  style:
    type: uri_folder
    optional: true
    description: Words of greeting.
  times:
    type: integer
    min: 1
    max: 9
    default: 3
    description: How often each is greeted.
  tone:
    type: string
    enum: [warm, cool]
    default: warm
    description: How it sounds.
  loud:
    type: boolean
    default: false
    description: Whether in capitals.
outputs:
  greetings:
    type: uri_folder
    description: A file for each name.
code: .
environment: file:../../environments/small/environment.yaml
command: >-
  python greet.py
  --people ${{inputs.people}}
  $[[--style ${{inputs.style}}]]
  --times ${{inputs.times}}
  --tone ${{inputs.tone}}
  --loud ${{inputs.loud}}
  --greetings ${{outputs.greetings}}
"""

CODE = """\
import argparse

import words

print(argparse.ArgumentParser().parse_known_args(), words)
"""

PYTHON = '''\
"""mldesigner's form of the same."""

from mldesigner import Input, Output, command_component


@command_component(
    name="count_people",
    version="1.0.0",
    display_name="Count people",
    description="Counts the names in a file, and writes the number.",
    tags={"task": "greeting"},
    is_deterministic=True,
    environment="azureml:small:1",
)
def count_people(
    people: Input(type="uri_file", description="Names, one a line."),
    number: Output(type="uri_file", description="How many there are."),
    least: Input(type="integer", min=0, max=9, description="What is counted at least.") = 1,
):
    print(people, number, least)
'''

ENVIRONMENT = 'name: small\nversion: "1"\ndescription: Nothing in it.\nbuild:\n  path: .\n'


def make(root: Path) -> Path:
    """Writes the project into the folder, and gives the component's."""
    files = {
        "components/greet/component.yaml": YAML,
        "components/greet/greet.py": CODE,
        "components/greet/words.py": "WORDS = ()\n",
        "environments/small/environment.yaml": ENVIRONMENT,
        "environments/small/Dockerfile": "FROM ubuntu:24.04 AS small\n",
    }
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return root / "components" / "greet"


def add_function(root: Path) -> Path:
    """Adds the component that is a function, and gives its folder."""
    folder = root / "components" / "count_people"
    folder.mkdir(parents=True)
    (folder / "component.py").write_text(PYTHON, encoding="utf-8")
    return folder
