"""What happened: the records of runs, their store, and their pages.

``allranks.runs()`` lists runs. Importing this package replaces the function of that name in `allranks`, so the package
can be called like it.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import Any


class _CallablePackage(ModuleType):
    def __call__(self, *arguments: Any, **options: Any) -> Any:
        return importlib.import_module("allranks.api.run").runs(*arguments, **options)


sys.modules[__name__].__class__ = _CallablePackage
