"""Small scenes whose pictures can be worked out by hand."""

from __future__ import annotations

from rota.cycles.timeline import Lane
from rota.view.scene import Bar, Buffer, Curve, Mark, Scene, Span, StallMark, Stripe

HOSTILE = '</svg><script>alert("&")</script>'


def bar(start: float, end: float, label: str, stage: int = 0, details: tuple[str, ...] = ("told",)) -> Bar:
    return Bar(start, end, label, stage, details)


BAND = Stripe(
    name="wave 0",
    lanes=(
        (Lane.MMA, (bar(100, 300, "c0"), bar(300, 500, "c1", 1))),
        (Lane.LDS, (bar(0, 50, "a0"), Bar(200, 300, "b0", 1, ("read",), pieces=((200, 220), (280, 300))))),
        (Lane.GLOBAL, (bar(0, 400, "A0"), bar(100, 450, "B0"))),
    ),
    stalls=(StallMark(0, 100, "vmcnt(4)", ("stalled 100 clk",)),),
    waits=(Mark(100, "vmcnt(4)", ("waits for A0",)),),
    barriers=(Mark(300, "barrier", ("all meet",)), Mark(5000, "barrier", ("not in the picture",))),
    curves=(
        Curve("vmcnt", "tokens", ((0, 2), (200, 6), (400, 1)), 8),
        Curve("lgkmcnt", "tokens", ((0, 1), (100, 2)), 15),
    ),
)

SCENE = Scene(
    title="small",
    facts=("MI355X", "II 500 clk (proven least)"),
    start=0,
    end=500,
    bands=(BAND,),
    windows=(0, 250, 500),
    buffers=(Buffer("A[0]", (Span(0, 200), Span(450, 900))),),
    notes=("wave 0 stands still for: wait vmcnt 20 % of the time",),
)
