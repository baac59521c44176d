"""Self-contained pages: HTML files that can be opened from a disk or sent by mail."""

import base64
import hashlib
from collections.abc import Callable, Sequence
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from allranks.version import __version__


def templates(package: str, finalize: Callable[[Any], Any] | None = None) -> Environment:
    """Return the environment of the templates in a package's folder `templates`. Undefined names are errors.

    finalize: is applied to each value before it is shown
    """
    return Environment(
        loader=PackageLoader(package, "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=finalize,
    )


def render(environment: Environment, page: str, style: str, scripts: Sequence[str], **values: object) -> str:
    """Return the page as text.

    page, style, scripts: names of templates. Style and scripts are the package's own and are not escaped; the page's
    content security policy has the hash of the scripts. Everything else on the page is escaped.
    """
    loader = environment.loader
    assert loader is not None
    css, *parts = (loader.get_source(environment, name)[0] for name in (style, *scripts))
    js = "\n".join(parts)
    return environment.get_template(page).render(
        style=Markup(css),
        script=Markup(js),
        script_hash=base64.b64encode(hashlib.sha256(js.encode()).digest()).decode(),
        version=__version__,
        **values,
    )
