"""Skip the statements of a notebook that need a package, a network or a file which this machine lacks.

Notebooks often download data or plot results around the cells that make the job. The names that a skipped statement
would have set are removed, so that no later statement uses an earlier value in their place: it is skipped as well. So
is a statement that fails after them outside of azure-ai-ml, since it may read what they would have written.
"""

from __future__ import annotations

import ast
import os
import sys
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import CodeType
from typing import Any

from allranks.errors import Level, Problem
from allranks.sdk import internals, user_code

_COMMAND = "os.system"
_LACKS = {"ConnectionError", "TimeoutError", "URLError", "gaierror", "ProxyError", "ImportError", "CalledProcessError"}
"""Names of exceptions, or of their bases: a package, a network or a program of this machine fails."""


@dataclass(frozen=True)
class SkippedStatements:
    """The statements of a notebook that were skipped.

    applies:  whether statements may be skipped now; else their exceptions are raised
    problems: of each, why it cannot be executed here. A warning if nothing has used what it would have imported
    lost:     names that were not set, each with the index of the problem; _COMMAND for a command that failed
    shell:    the places of shell lines, which are never executed
    """

    path: Path
    applies: Callable[[], bool]
    problems: list[Problem] = field(default_factory=list)
    lost: dict[str, int] = field(default_factory=dict)
    shell: list[str] = field(default_factory=list)

    def run(self, code: CodeType, text: str, file: str, namespace: dict[str, Any]) -> None:
        """Execute the code of a cell, except for statements that this machine cannot execute. Other exceptions are not
        caught.

        text: the cell as Python
        file: the name under which it was compiled
        """
        statements = ast.parse(text).body
        future = [each for each in statements if isinstance(each, ast.ImportFrom) and each.module == "__future__"]
        while True:
            try:
                with internals.replaced(os, "system", partial(self._system, os.system)):
                    exec(code, namespace)
                return
            except Exception as error:
                frames = traceback.extract_tb(error.__traceback__)
                line = next(frame.lineno or 0 for frame in frames if frame.filename == file)
                failed = [each for each in statements if _first(each) <= line <= (each.end_lineno or 0)]
                if not self._skip(error, all(isinstance(each, (ast.Import, ast.ImportFrom)) for each in failed)):
                    raise
                for name in {name for each in failed for name in _set_by(each)}:
                    self.lost[name] = self.lost.get(getattr(error, "name", ""), len(self.problems) - 1)
                    namespace.pop(name, None)
                statements = [each for each in statements if _first(each) > line]
                code = compile(ast.Module([*future, *statements], []), file, "exec", dont_inherit=True)

    def required(self) -> list[Problem]:
        """Return the problems of statements whose results may be missing."""
        return [problem for problem in self.problems if problem.level is not Level.WARNING]

    def _system(self, system: Callable[[str], int], command: str) -> int:
        """Run a command as `os.system`. Record a failure: a later statement may raise because of it."""
        code = system(command)
        if code and self.applies():
            self.lost[_COMMAND] = len(self.problems)
            where = str(user_code.caller(sys._getframe(1), self.path))
            found = f"the command {command} ended with exit code {os.waitstatus_to_exitcode(code)}"
            self.problems.append(Problem(where, found, code="file-fails", level=Level.WARNING))
        return code

    def _skip(self, error: Exception, imports: bool) -> bool:
        """Return whether the statement that raised is skipped. Add the reason, unless it is known."""
        if not self.applies():
            return False
        innermost = traceback.extract_tb(error.__traceback__)[-1]
        is_raised = user_code.is_users(innermost.filename) and (innermost.line or "").startswith("raise ")
        used = error.name if isinstance(error, NameError) else _COMMAND if is_raised else None
        if used in self.lost:
            index = self.lost[used]
            self.problems[index] = replace(self.problems[index], level=Level.MACHINE)
            return True
        problem = user_code.problem(error, self.path)
        is_own = used or is_raised or any(part in innermost.filename for part in ("/azure/ai/ml/", "/allranks/sdk/"))
        if isinstance(error, FileNotFoundError) and (self.shell or self.required()):
            fix = f"run the shell lines that make it: {self.shell[-1]}" if self.shell else problem.fix
            problem = replace(problem, fix=fix)
        elif not _is_of_machine(error) and (is_own or not self.required()):
            return False
        self.problems.append(replace(problem, level=Level.WARNING if imports else Level.MACHINE))
        return True


def _is_of_machine(error: BaseException | None) -> bool:
    while error is not None:
        if _LACKS & {kind.__name__ for kind in type(error).__mro__}:
            return True
        error = error.__cause__ or error.__context__
    return False


def _first(statement: ast.stmt) -> int:
    """Return the first line of a statement, with its decorators."""
    decorators: list[ast.expr] = getattr(statement, "decorator_list", [])
    return min([statement.lineno, *(each.lineno for each in decorators)])


def _set_by(statement: ast.stmt) -> Iterator[str]:
    for node in ast.walk(statement):
        if isinstance(node, ast.alias):
            yield node.asname or node.name.partition(".")[0]
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node.name
