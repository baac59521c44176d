"""Determine whether the code that makes a call handles its failure."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Callable, Iterator
from types import FrameType


def creates_when_it_fails(frame: FrameType | None, is_users: Callable[[str], bool]) -> bool:
    """Return whether the call is in a ``try`` whose handler creates something, as in "get it, or else create it".

    frame: the frame that makes the call; the innermost frame of the user's code is used
    """
    while frame is not None and not is_users(frame.f_code.co_filename):
        frame = frame.f_back
    if frame is None:
        return False
    try:
        tree = ast.parse("".join(linecache.getlines(frame.f_code.co_filename)))
    except (SyntaxError, ValueError):
        return False
    return any(
        block.body[0].lineno <= frame.f_lineno <= (block.body[-1].end_lineno or 0) and _creates(block.handlers)
        for block in _tries(tree)
    )


def _tries(tree: ast.AST) -> Iterator[ast.Try]:
    yield from (node for node in ast.walk(tree) if isinstance(node, ast.Try))


def _creates(handlers: list[ast.ExceptHandler]) -> bool:
    calls = (node.func for handler in handlers for node in ast.walk(handler) if isinstance(node, ast.Call))
    names = (call.attr if isinstance(call, ast.Attribute) else getattr(call, "id", "") for call in calls)
    return any("create" in name for name in names)
