"""A page's frame: head, style and title. It needs no network, and follows the reader's light or dark mode."""

from __future__ import annotations

from html import escape
from pathlib import Path

STYLE = Path(__file__).with_name("style.css")


def html(title: str, lead: str, content: str) -> str:
    """Return the whole page as HTML. title and lead are plain text, content is HTML."""
    return f"""<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}</title>
<style>
{STYLE.read_text(encoding="utf-8")}</style>
<main>
<h1>{escape(title)}</h1>
<p class="lead">{escape(lead)}</p>
{content}
</main>
</html>
"""


def bar(value: float, most: float) -> str:
    """Return a bar for a table cell, as long as the value's share of the largest."""
    return f'<span class="bar" style="width:{60 * value / most if most else 0:.0f}px"></span>'
