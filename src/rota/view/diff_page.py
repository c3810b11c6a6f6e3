"""The diff as a page: takes a `ScheduleDiff`, gives one HTML file with both listings side by side."""

from __future__ import annotations

from rota.program.entry import ScheduleEntry
from rota.view.diff import Change, Row, ScheduleDiff
from rota.view.page import page_style
from rota.view.svg import content

_WORDS = {
    Change.SAME: "",
    Change.CHANGED: "changed",
    Change.MOVED: "moved",
    Change.REMOVED: "removed",
    Change.ADDED: "added",
}
# A change is a word, a sign and a shade: nothing hangs on the hue.
_STYLE = """
body{padding:14px 20px}h1{font-size:18px;margin:4px 0 10px}h2{font-size:14px;margin:18px 0 4px}
th,td{padding-left:10px}td.number{text-align:right}td.word{font-size:11px}
tr.changed td.entry{background:#e69f0040}tr.moved td.entry{background:#56b4e940}
tr.removed td.entry:nth-child(2){background:#d55e0048;text-decoration:line-through}
tr.added td.entry:nth-child(3){background:#009e7348}tr.same{opacity:.62}
"""


def diff_page(diff: ScheduleDiff) -> str:
    """A whole document."""
    title = content(f"{diff.before} → {diff.after}")
    figures = "".join(
        f'<tr><td>{content(figure.name)}</td><td class="number">{figure.before:,.0f}</td>'
        f'<td class="number">{figure.after:,.0f}</td><td class="number">{content(figure.difference)}</td></tr>'
        for figure in diff.figures
    )
    phases = "".join(
        f"<h2>{phase.value.lower()}</h2><table><thead><tr><th></th><th>{content(diff.before)}</th>"
        f"<th>{content(diff.after)}</th><th></th></tr></thead><tbody>{''.join(map(_row, rows))}</tbody></table>"
        for phase, rows in diff.phases
    )
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="color-scheme" content="light dark">'
        f"<title>{title}</title><style>{page_style()}{_STYLE}</style></head>\n<body><h1>{title}</h1>"
        f"<table><thead><tr><th></th><th>{content(diff.before)}</th><th>{content(diff.after)}</th>"
        f"<th></th></tr></thead><tbody>{figures}</tbody></table>{phases}</body></html>\n"
    )


def _row(row: Row) -> str:
    return (
        f'<tr class="{_WORDS[row.change] or "same"}"><td>{content(row.change.value)}</td>{_cell(row.before)}'
        f'{_cell(row.after)}<td class="word">{_WORDS[row.change]}</td></tr>'
    )


def _cell(entry: ScheduleEntry | None) -> str:
    return f'<td class="entry">{content(str(entry)) if entry else ""}</td>'
