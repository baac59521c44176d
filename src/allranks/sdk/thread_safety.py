"""Use azure-ai-ml's models and Python's parser from several threads, which neither of them supports.

azure-ai-ml resolves the components of a pipeline in threads if its private features are enabled. A session enables them
for control flow nodes.
"""

from __future__ import annotations

import ast
import contextlib
import threading
from collections.abc import Iterator
from typing import Any

from allranks.sdk import internals

_models, _parser = threading.RLock(), threading.Lock()


@contextlib.contextmanager
def serialized_model_creation() -> Iterator[None]:
    """Let one thread at a time create a model of the SDK's REST client inside of the block.

    The first object of a class writes the table of its fields into the class, while another thread may read the same
    class for the table of a subclass: "dictionary changed size during iteration", or a response that silently stays a
    plain dictionary (Azure/azure-sdk-for-python#47426).
    """
    model = internals.RestModel
    create = model.__new__

    def in_turn(cls: Any, *values: Any, **named: Any) -> Any:
        with _models:
            return create(cls, *values, **named)

    with internals.replaced(model, "__new__", staticmethod(in_turn)):
        yield


def parsed(text: str) -> ast.Module:
    """Return the tree of Python source. Raise what `ast.parse` raises.

    The parser of CPython 3.11 counts the depth of the tree for all threads together, and raises SystemError if a second
    one parses at the same time (python/cpython#106905).
    """
    with _parser:
        return ast.parse(text)
