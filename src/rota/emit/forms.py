"""rota's own emitters (HIP, a skeleton for one's own ops, a document) and emitters by name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, TypedDict

from rota.compiled.compiled_schedule import CompiledSchedule
from rota.emit.gemm.hip_gemm import macros
from rota.emit.gemm.program_form import ProgramForm, form_of
from rota.emit.planning import plan_schedule
from rota.emit.text import (
    WORDS,
    Emission,
    Emitter,
    FunctionCall,
    Reasons,
    Template,
    comment,
    contract,
    describe_entry,
    identifier,
    refuse_count,
    sync_reasons,
    sync_text,
    unfit,
)
from rota.errors import EmissionError
from rota.program.entry import Entry
from rota.program.kinds import Phase
from rota.program.lowered import LoweredProgram
from rota.registry import Registry

if TYPE_CHECKING:
    from rota.emit.gemm.gemm_tile import Element
    from rota.pipeline.geometry import TileShape

# The order alone.
#
# Waits, barriers and fences are rota's; what an op does is the author's: a class with one function for each op, by
# stages for each kind of op.

_COMMENT_COLUMN = 72
_TEMPLATE = Template("rota.emit", "skeleton.h.txt")


def emit_skeleton(compiled: CompiledSchedule) -> str:
    """The header; waits for registers are planned first where the schedule left them to the compiler."""
    compiled = plan_schedule(compiled)
    program, reasons = compiled.lowered, sync_reasons(compiled)
    form = form_of(program)
    words = list(WORDS.lines("sync"))
    name = identifier(form.symbol, macros(words))
    tiles = form.k_tiles()
    phases = {phase: list(_phase(program, form, phase, tiles[phase], reasons)) for phase in Phase}
    data = [entry for entry in program.entries if not entry.op.is_framework]
    check_calls(form, data)
    supplied = dict.fromkeys(form.call(entry, 0).declaration for entry in form.as_declared(data))
    groups = len(program.roles) > 1
    lines = _TEMPLATE.lines(
        "skeleton",
        title=comment(f"The order of {name} for {program.machine.name} ({program.machine.arch})."),
        name=name,
        program=program,
        group=", int wave_group" if groups else "",
        group_note=["// `wave_group` is 0 or 1, the same for all lanes of a wave."] if groups else (),
        supplied=(f"//   {each}" for each in supplied),
        notes=form.notes(),
        contract=contract(compiled),
        words=words,
        prologue=phases[Phase.PROLOGUE],
        loop=phases[Phase.KERNEL],
        epilogue=phases[Phase.EPILOGUE],
        undefined=(f"#undef {name}" for name in macros(words)),
    )
    return "\n".join([*lines, ""])


def check_calls(form: ProgramForm, entries: Sequence[Entry]) -> None:
    """One call represents one op: what reads or writes other places must be called by other numbers."""
    known: dict[FunctionCall, Entry] = {}
    for entry in entries:
        call = form.call(entry, 0)
        first = known.setdefault(call, entry)
        if (first.effect.reads, first.effect.writes) != (entry.effect.reads, entry.effect.writes):
            raise refuse_count(
                f"{entry.op} works on other places than another entry of that name; both would be one call",
                concerns=(first.concern(), entry.concern()),
                evidence=(("call", call.text("k")), ("one works on", _places(first)), ("the other on", _places(entry))),
                fixes=("give each of them a name of its own",),
            )


def _places(entry: Entry) -> str:
    return ", ".join(map(str, (*entry.effect.reads, *entry.effect.writes)))


def _phase(
    program: LoweredProgram, form: ProgramForm, phase: Phase, tiles: Sequence[int], reasons: Reasons
) -> Iterator[str]:
    yield f"  // {phase.value.lower()}"
    for entry, tile in zip(program.phase(phase), tiles, strict=True):
        if entry.op.is_framework:
            text = sync_text(program, entry)
        else:
            text = f"{form.call(entry, tile).text('' if phase is Phase.PROLOGUE else 'k')} ROTA_FENCE"
        yield f"  {text}".ljust(_COMMENT_COLUMN) + comment(describe_entry(program, entry, reasons))


class GemmForm(TypedDict, total=False):
    """What a body declared in tiles leaves to the kernel's settings."""

    element: Element
    waves: int


def gemm_form(shape: TileShape | None) -> GemmForm:
    """The settings; nothing for a loop that says it itself."""
    from rota.emit.gemm.gemm_tile import element_of

    if shape is None:
        return {}
    return {"element": element_of(shape.instruction, shape.geometry), "waves": shape.waves}


def hip(asked: Emission) -> str:
    """The loop of a HIP GEMM, with as much around it as runs it."""
    from rota.emit.gemm.hip_gemm import emit_gemm

    _no_options(asked, "hip")
    refuse_attention(asked, "hip")
    return emit_gemm(asked.named, asked.kernel.geometry(), **gemm_form(asked.kernel.shape()))


def is_attention(compiled: CompiledSchedule) -> bool:
    """True for a loop of attention forward, which has a whole kernel of its own."""
    from rota.emit.attention.attention_kernel import shape_of

    return shape_of(compiled) is not None


def refuse_attention(asked: Emission, form: str) -> None:
    """Refuse a form of GEMMs for a loop of attention forward."""
    if is_attention(asked.compiled):
        raise unfit(
            f"the form {form} writes GEMMs, and {asked.compiled.name} is an attention forward",
            fixes=("`--form kernel` writes it as a whole kernel, `--form launcher` the header that launches it",),
        )


def kernel(asked: Emission) -> str:
    """A whole HIP GEMM, for any M, N and K; or a whole attention forward, for any numbers of queries and keys."""
    from rota.emit.attention.attention_kernel import emit_attention
    from rota.emit.whole.whole_kernel import emit_whole
    from rota.emit.whole.whole_options import parse_options

    if is_attention(asked.compiled):
        _no_options(asked, "kernel of attention", fixes=())
        return emit_attention(asked.named)
    settings = parse_options(asked.options)
    return emit_whole(asked.named, asked.kernel.geometry(), settings, **gemm_form(asked.kernel.shape()))


def launcher(asked: Emission) -> str:
    """The host's side of a whole HIP GEMM, or attention."""
    from rota.emit.attention.attention_kernel import emit_attention_launcher
    from rota.emit.whole.whole_host import emit_launcher
    from rota.emit.whole.whole_options import parse_options

    if is_attention(asked.compiled):
        _no_options(asked, "launcher of attention", fixes=())
        return emit_attention_launcher(asked.named)
    settings = parse_options(asked.options)
    return emit_launcher(asked.named, asked.kernel.geometry(), settings, **gemm_form(asked.kernel.shape()))


def project_of(asked: Emission) -> dict[str, str]:
    """The files of a project around a whole HIP GEMM."""
    from rota.emit.whole.whole_host import emit_project
    from rota.emit.whole.whole_options import parse_options

    if is_attention(asked.compiled):
        raise EmissionError.of(
            "T209",
            "there is no project around an attention kernel yet",
            fixes=("`--form kernel` and `--form launcher` write the kernel and the header that launches it",),
        )
    settings = parse_options(asked.options)
    return emit_project(asked.named, asked.kernel.geometry(), settings, **gemm_form(asked.kernel.shape()))


def skeleton(asked: Emission) -> str:
    """A C++ header of the order, with calls for the ops."""
    _no_options(asked, "skeleton")
    return emit_skeleton(asked.named)


def document(asked: Emission) -> str:
    """The schedule as JSON."""
    from rota.emit.document.exchange import to_json

    _no_options(asked, "json")
    return to_json(asked.compiled) + "\n"


def _no_options(asked: Emission, form: str, fixes: tuple[str, ...] = ("`--form kernel` takes them",)) -> None:
    """What was asked for is applied or refused."""
    if asked.options:
        raise EmissionError.of(
            "T209", f"the form {form} has no settings", evidence=tuple(asked.options.items()), fixes=fixes
        )


EMITTERS: Registry[Emitter] = Registry(
    what="emitter",
    group="rota.emitters",
    own=MappingProxyType(
        {
            "hip": "rota.emit.forms:hip",
            "kernel": "rota.emit.forms:kernel",
            "launcher": "rota.emit.forms:launcher",
            "skeleton": "rota.emit.forms:skeleton",
            "json": "rota.emit.forms:document",
            "gluon": "rota.languages.gluon:gluon",
            "flydsl": "rota.languages.flydsl:flydsl",
            "mojo": "rota.languages.mojo:mojo",
        }
    ),
    expected="a function that takes an Emission and gives text",
    lacks=lambda made: None if callable(made) else "can't be called",
)
