"""The page: takes a scene and its schedule, gives one HTML file that needs nothing else.

The picture works without scripts.  With them the time axis can be stretched, a click keeps an entry's story on the
page, and an entry's operands light up.
"""

from __future__ import annotations

from collections.abc import Iterable

from rota.compiler.compiled import CompiledSchedule
from rota.program.loop import Step, steps_of
from rota.view.draw import LEFT, RIGHT, draw
from rota.view.palette import DARK, LIGHT, Theme
from rota.view.reasons import Key, reasons_of
from rota.view.scene import Scene
from rota.view.svg import content


def page(scene: Scene, compiled: CompiledSchedule) -> str:
    """A whole document."""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width"><meta name="color-scheme" content="light dark">'
        f"<title>{content(scene.headline)}</title><style>{page_style()}</style></head>\n<body>"
        '<p class="tools"><label>stretch time <input type="range" min="0" max="5" step="0.25" value="0"></label>'
        "<span>click keeps an entry's story; its operands light up</span></p>"
        f'<div class="scroll">{draw(scene)}</div><pre class="story" hidden></pre>'
        f"{folded_table(compiled)}"
        f"<script>{_SCRIPT}</script></body></html>\n"
    )


def fragment(scene: Scene, compiled: CompiledSchedule) -> str:
    """The same without scripts, for inside another page such as a notebook."""
    return (
        f'<div class="rota-shown"><style>{page_style()}</style><div class="scroll">{draw(scene)}</div>'
        f"{folded_table(compiled)}</div>\n"
    )


def folded_table(compiled: CompiledSchedule) -> str:
    """All entries with source line and reason, a table per phase, folded."""
    reasons = reasons_of(compiled)
    steps = steps_of(compiled)
    parts = []
    for name, phase in (("prologue", steps.prologue), ("kernel", steps.kernel), ("epilogue", steps.epilogue)):
        rows = "".join(_row(step, reasons[Key(step.entry.phase, step.entry.time_slot)].lines) for step in phase)
        parts.append(
            f"<details><summary>{name}: {len(phase)} entries</summary><table><thead><tr><th>#</th><th>entry</th>"
            f"<th>declared at</th><th>why it stands there</th></tr></thead><tbody>{rows}</tbody></table></details>"
        )
    return f'<section class="entries">{"".join(parts)}</section>'


def _row(step: Step, why: Iterable[str]) -> str:
    entry, group = step.entry, "" if step.group is None else f" (group {step.group} only)"
    source = f"{entry.op.source}".rpartition("/")[2] if entry.op.source else ""
    kind = ' class="sync"' if entry.op.is_framework else ""
    cells = (str(entry.time_slot), f"{entry.op}{group}", source, "; ".join(why))
    return f"<tr{kind}>{''.join(f'<td>{content(cell)}</td>' for cell in cells)}</tr>"


def page_style() -> str:
    """The style of what stands around the picture; the picture brings its own."""
    return f"{_SHAPE}{_colours(LIGHT)}@media (prefers-color-scheme:dark){{{_colours(DARK)}}}"


def _colours(theme: Theme) -> str:
    return (
        f"body,.rota-shown{{color:{theme.text};background:{theme.background}}}"
        f".tools span,summary,td.faint{{color:{theme.faint}}}"
        f"th,td{{border-bottom:1px solid {theme.grid}}}tr.sync{{color:{theme.faint}}}"
        f".story{{background:{theme.panel};border:1px solid {theme.grid}}}"
    )


_SHAPE = """
body,.rota-shown{font:13px/1.45 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif;margin:0}
.tools{margin:10px 16px 0;display:flex;gap:24px;align-items:center}
.tools input{vertical-align:middle;width:180px}
.scroll{overflow-x:auto}
.story{margin:8px 16px;padding:8px 12px;border-radius:6px;white-space:pre-wrap;position:sticky;bottom:8px}
.entries{margin:8px 16px 24px}
summary{cursor:pointer;padding:3px 0}
table{border-collapse:collapse;margin:6px 0 14px}
th,td{text-align:left;padding:2px 14px 2px 0;vertical-align:top;font-variant-numeric:tabular-nums}
tr.sync td:nth-child(2){padding-left:18px}
"""

_SCRIPT = """
const picture=document.querySelector('svg.rota'),plot=picture.querySelector('svg.plot'),
names=picture.querySelector('.names'),head=picture.querySelector('.head'),scroll=document.querySelector('.scroll'),story=document.querySelector('.story'),
range=document.querySelector('.tools input'),base=picture.width.baseVal.value;
function stretch(){
  const least=Math.max(base,scroll.clientWidth),width=least*2**range.value,inner=width-MARGIN;
  picture.setAttribute('width',width);plot.setAttribute('width',inner);
  for(const label of plot.querySelectorAll('text[data-need]'))
    label.classList.toggle('tight',label.dataset.share*inner<+label.dataset.need);
  stay();
}
function stay(){for(const part of [names,head])part.setAttribute('transform',`translate(${scroll.scrollLeft})`);}
function light(bar){
  const needs=new Set((bar?bar.dataset.needs:'').split(' ').filter(Boolean));
  for(const other of plot.querySelectorAll('.bar[data-key]')){
    other.classList.toggle('lit',!!bar&&(other===bar||needs.has(other.dataset.key)));
    other.classList.toggle('dim',!!bar&&needs.size>0&&other!==bar&&!needs.has(other.dataset.key));
  }
}
plot.addEventListener('click',event=>{
  const thing=event.target.closest('g'),title=thing&&thing.querySelector('title');
  story.hidden=!title;story.textContent=title?title.textContent:'';
  light(title&&thing.dataset.key?thing:null);
});
range.addEventListener('input',stretch);scroll.addEventListener('scroll',stay);addEventListener('resize',stretch);stretch();
""".replace("MARGIN", str(LEFT + RIGHT))
