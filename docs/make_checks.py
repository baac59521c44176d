"""Writes docs/checks.md from the tables of rules.

python docs/make_checks.py
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from allranks.checks import component, environment, plan
from allranks.errors import Level, Rule

PAGE = Path(__file__).resolve().parent / "checks.md"

HEAD = """# What `allranks check` checks

Made by `python docs/make_checks.py` from the tables of rules in `src/allranks`.

```console
$ allranks check pipelines/image_classification.py
$ allranks check --strict components
```

| level | what it means | exit status |
|---|---|---|
| error | azure-ai-ml or Azure ML refuses it, the designer cannot take it, or azure-ai-ml accepts and drops it | 2 |
| warning | they accept it, and it will probably do something else than was meant | 0; with `--strict` 2 |
| advice | the style of this project, which others need not share; listed by `--strict` only | 0; with `--strict` 2 |
| this machine | only this machine lacks something: a package, a GPU, an asset of a workspace | 0 |

The rules about commands and environments are not applied to
pipeline components. [public-specs.md](public-specs.md) shows what the rules find in specs that Microsoft publishes.

## Ignore a finding

A finding ends with its rule, which `allranks why RULE` explains. A comment ignores warnings and advice of a rule,
and the errors that can be ignored, in what azure-ai-ml accepts. `allranks run` refuses and ignores the same.

```yaml
# allranks: ignore port-description
name: train
version: 1.2  # allranks: ignore version-number
```

At the end of a line, the comment applies to that line; on a line of its own, to the next line; above all content, to
the whole file. It is the same comment in a pipeline in Python. Several rules are separated by commas.

A source that begins with `azure-ai-ml` is a file of the package `azure.ai.ml`, read in version 1.35. `style` is this
project's own.
"""

HEAD_PLAN = """
## Pipelines and jobs

These rules apply to each step of the compiled pipeline, at any depth. `allranks run` and `allranks submit` apply them
too. A component that is checked by itself is treated as a step that sets nothing: a launcher in its command, a size or
an image that it names get the same warnings and advice.

"""
HEAD_ENVIRONMENTS = """
## Environments

`allranks environments check PATH` applies these rules to the environments of any project, at any depth of a folder:
YAML files with an image or a build context, and their conda files and Dockerfiles.

"""
HEAD_OWN_ENVIRONMENTS = """
`allranks environments check NAME` applies these rules to an environment of this project's style, which has a Dockerfile
and an expect.yaml, as [environments.md](environments.md) explains:

"""
HEAD_COMPONENTS = """
## Components

"""
COLUMNS = ("rule", "level", "what it finds", "source", "fix")


def page() -> str:
    """Return the page."""
    parts = (HEAD, HEAD_COMPONENTS, table(component.catalogue()), HEAD_PLAN, table(plan.catalogue()))
    environments = (HEAD_ENVIRONMENTS, table(environment.catalogue()), HEAD_OWN_ENVIRONMENTS)
    return "".join((*parts, *environments, table(environment.own_catalogue())))


def table(rules: Iterable[Rule]) -> str:
    """Return the rules as a table, errors first."""
    order = list(Level)
    rows = sorted(rules, key=lambda rule: order.index(rule.level))
    lines = [_line(COLUMNS), "|" + "---|" * len(COLUMNS)]
    lines += [_line((f"`{rule.code}`", _level(rule), rule.what, rule.source, rule.fix)) for rule in rows]
    return "\n".join(lines) + "\n"


def _level(rule: Rule) -> str:
    return f"{rule.level.value}{', can be ignored' if rule.accepted_by_sdk else ''}"


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
