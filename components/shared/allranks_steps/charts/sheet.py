"""A page: its frame, style, figures and table. It needs no network, and follows the reader's light or dark mode."""

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path

STYLE = Path(__file__).with_name("style.css")


def html(title: str, lead: str, parts: Iterable[str]) -> str:
    """Return the whole page as HTML. title and lead are plain text, the parts are HTML."""
    content = "\n".join(parts)
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


def figures(values: Iterable[tuple[str, str]]) -> str:
    """Return the main figures as HTML. values: pairs of a value and its label, as plain text"""
    cells = "\n".join(f"<div><b>{escape(value)}</b><span>{escape(label)}</span></div>" for value, label in values)
    return f'<div class="figures">\n{cells}\n</div>'


def verdict(text: str) -> str:
    """Return the paragraph with the result. text: plain text"""
    return f'<p class="said">{escape(text)}</p>'


def notes(texts: Iterable[str]) -> str:
    """Return a warning for each text. texts: plain text"""
    return "\n".join(f'<p class="note">{escape(text)}</p>' for text in texts)


def chart(name: str, subtitle: str, picture: str, *, is_wide: bool = False) -> str:
    """Return a chart with its heading. subtitle: plain text"""
    wide = ' class="wide"' if is_wide else ""
    return f'<div{wide}><h2>{name} <span class="of">{escape(subtitle)}</span></h2>\n{picture}\n</div>'


def charts(parts: Iterable[str], legend: Sequence[tuple[int, str]] = ()) -> str:
    """Return the section with the charts. legend: the colours of the series and their names, as plain text"""
    keys = "\n".join(f"<span>{key(colour)}{escape(name)}</span>" for colour, name in legend)
    above = [f'<p class="legend">{keys}</p>'] if legend else []
    return "\n".join(["<section>", *above, '<div class="charts">', *parts, "</div>", "</section>"])


def table(names: Iterable[str], rows: Iterable[Sequence[str]], caption: str) -> str:
    """Return the section with the table of all figures. names: plain text; the cells of the rows: HTML"""
    head = "".join(f"<th>{escape(name)}</th>" for name in names)
    body = "\n".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    return f"""<section>
<h2>Figures</h2>
<div class="scroll"><table>
<thead><tr>{head}</tr></thead>
<tbody>
{body}
</tbody>
</table></div>
<p class="caption">{escape(caption)}</p>
</section>"""


def bar(value: float, most: float) -> str:
    """Return a bar for a table cell, as long as the value's share of the largest."""
    return f'<span class="bar" style="width:{60 * value / most if most else 0:.0f}px"></span>'


def key(colour: int) -> str:
    """Return the legend key of a series."""
    return f'<i class="key s{colour}"></i>'


def write(folder: Path, files: Mapping[str, str]) -> None:
    """Write files with these names and texts to an output, and to ./outputs, whose files Azure ML's studio shows."""
    for target in (folder, Path("outputs")):
        target.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            (target / name).write_text(text, encoding="utf-8")
