"""A page's frame: head, style and title. It needs no network, and follows the reader's light or dark mode."""

from __future__ import annotations

from html import escape
from pathlib import Path

STYLE = Path(__file__).with_name("style.css")


def html(title: str, lead: str, content: str) -> str:
    """The whole page as text. title and lead are plain text, the content is HTML."""
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
    """A bar before a number in a table, as long as its part of the largest."""
    return f'<span class="bar" style="width:{60 * value / most if most else 0:.0f}px"></span>'
