"""A loop for each kind of op: takes nothing, gives the smallest loops in which each kind matters to the result."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from rota import Loop
from rota.program.loop_spec import LoopSpec

MFMA = "v_mfma_f32_16x16x32_bf16"
SCALED = "v_mfma_scale_f32_16x16x128_f8f6f4"


def _begun(name: str, *, needs: tuple[str, ...] = ()) -> Loop:
    loop = Loop(name, waves=4)
    loop.load(loop.tile("A", size=4096), moved=4096, needs=needs)
    return loop


def _summed(loop: Loop, *operands: str) -> LoopSpec:
    loop.mma(loop.accumulator("c", registers=4), *operands, instruction=MFMA)
    return loop.build()


def gload() -> LoopSpec:
    """A factor that comes to registers without passing through LDS."""
    loop = _begun("gload")
    return _summed(loop, loop.fragment("a", "A", registers=4), loop.gload("b", registers=4))


def gstore(tokens: int = 1) -> LoopSpec:
    """What is read goes to memory."""
    loop = _begun("gstore")
    a = loop.fragment("a", "A", registers=4)
    s = loop.valu("s", [a], registers=4)
    loop.gstore(loop.memory("out", size=4096), s, moved=4096, instructions=tokens)
    return loop.build()


def atomic(tokens: int = 4) -> LoopSpec:
    """What is read is added to memory."""
    loop = _begun("atomic")
    a = loop.fragment("a", "A", registers=4)
    s = loop.valu("s", [a], registers=4)
    loop.atomic(loop.memory("out", size=4096), s, moved=4096, instructions=tokens)
    return loop.build()


def addressed() -> LoopSpec:
    """A tile whose address is itself loaded."""
    loop = Loop("addressed", waves=4)
    page = loop.gload("page", registers=1)
    loop.load(loop.tile("A", size=4096), moved=4096, needs=[page])
    a = loop.fragment("a", "A", registers=4)
    return _summed(loop, a, a)


def lds_store() -> LoopSpec:
    """Waves hand each other through LDS what they computed."""
    loop = _begun("lds_store")
    s = loop.valu("s", [loop.fragment("a", "A", registers=4)], registers=4)
    loop.lds_store(loop.tile("P", size=4096), s, moved=4096)
    return _summed(loop, "a", loop.fragment("p", "P", registers=4))


def transposed() -> LoopSpec:
    """A factor that lies in LDS the other way round."""
    loop = _begun("transposed")
    return _summed(loop, loop.transposed("a", "A", registers=4, instructions=2), "a")


def transcendental(instructions: int = 4) -> LoopSpec:
    """Exponentials of what is read are a factor."""
    loop = _begun("transcendental")
    a = loop.fragment("a", "A", registers=4)
    return _summed(loop, a, loop.transcendental("e", [a], registers=4, instructions=instructions))


def k_slices(*, whole: bool = False) -> LoopSpec:
    """A tile that two loads bring, each with the K slice that one fragment reads."""
    loop = Loop("k_slices", waves=4)
    tile = loop.tile("A", size=8192)
    for part in (0, 1):
        loop.load(tile, name=f"load{part}", moved=4096)
    c = loop.accumulator("c", registers=4)
    for part in (0, 1):
        a = loop.fragment(f"a{part}", tile, registers=4, parts=() if whole else (part,))
        loop.mma(c, a, a, instruction=MFMA, name=f"mma{part}")
    return loop.build()


def scaled(*formats: str, instructions: int = 1) -> LoopSpec:
    """Two factors of narrow elements, with a scale for every block of them."""
    loop = _begun("scaled")
    a = loop.fragment("a", "A", registers=8, instructions=2)
    scale = loop.gload("scale", registers=1)
    c = loop.accumulator("c", registers=4)
    loop.mma(c, a, a, instruction=SCALED, instructions=instructions, scales=[scale], formats=formats)
    return loop.build()


LOOPS: Mapping[str, Callable[[], LoopSpec]] = {
    each.__name__: each
    for each in (gload, gstore, atomic, addressed, lds_store, transposed, transcendental, k_slices, scaled)
}
