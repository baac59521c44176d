"""Links from a page to files beside it. They are relative, so that a copied folder keeps them."""

from __future__ import annotations

import os
from dataclasses import dataclass
from urllib.parse import quote


@dataclass(frozen=True)
class Links:
    """Links of the page of a run.

    folder: the run's folder, in which the page is; "" if the page is in no folder. The runs whose results it reuses
            are beside it.
    """

    folder: str

    def link(self, path: str) -> str:
        """Return the relative link to a file or folder of this run or of a run beside it; "" for any other text.

        A path elsewhere on this machine has no link, because a copied page would point to nothing.
        """
        relative = self._relative(path)
        return quote(relative, errors="replace") if relative else ""

    def shown(self, path: str) -> str:
        """Return a path as the page shows it: relative if it has a link."""
        return self._relative(path) or path

    def page_of(self, run: str) -> str:
        """Return the relative link to the page of a run beside this one."""
        return f"../{quote(run, safe='', errors='replace')}/run.html" if self.folder else ""

    def _relative(self, path: str) -> str:
        if not self.folder or not os.path.isabs(path) or "\0" in path:
            return ""
        runs = os.path.dirname(self.folder)
        if not os.path.normpath(path).startswith(runs + os.sep) or runs == os.sep:
            return ""
        return os.path.relpath(path, self.folder)
