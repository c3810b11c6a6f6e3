"""The order alone: takes any compiled schedule, gives a header that calls what the author supplies for each op.

Waits, barriers and fences are rota's; what an op does is the author's: a class with one function for each op, by stages
for each kind of op.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rota.compiled.compiled_schedule import CompiledSchedule
from rota.emit.gemm.gemm_words import macros
from rota.emit.gemm.program_form import ProgramForm, form_of
from rota.emit.refusal import miscounted
from rota.emit.register_waits import with_register_waits
from rota.emit.text.contract import contract
from rota.emit.text.entry_reasons import Reasons, sync_reason, sync_reasons
from rota.emit.text.function_call import FunctionCall
from rota.emit.text.names import comment, identifier
from rota.emit.text.sync_text import check_words, sync_text, sync_words
from rota.program.entry import Entry
from rota.program.lowered import LoweredProgram
from rota.program.phase import Phase

_COMMENT_COLUMN = 72


def emit_skeleton(compiled: CompiledSchedule) -> str:
    """The header; waits for registers are planned first where the schedule left them to the compiler."""
    check_words(compiled.lowered)
    compiled = with_register_waits(compiled)
    program, reasons = compiled.lowered, sync_reasons(compiled)
    form = form_of(program)
    words = list(sync_words())
    name = identifier(form.symbol, macros(words))
    tiles = form.k_tiles()
    phases = {phase: list(_phase(program, form, phase, tiles[phase], reasons)) for phase in Phase}
    data = [entry for entry in program.entries if not entry.op.is_framework]
    check_calls(form, data)
    supplied = dict.fromkeys(form.call(entry, 0).declaration for entry in form.as_declared(data))
    groups = ", int wave_group" if len(program.roles) > 1 else ""
    group_note = ["// `wave_group` is 0 or 1, the same for all lanes of a wave."] if groups else []
    lines = [
        comment(f"The order of {name} for {program.machine.name} ({program.machine.arch})."),
        f"// It computes {program.tiles_outside} + {program.tiles_per_trip} * trips K-tiles, trips >= 0.",
        "// `k` is the number, from 0, of the K-tile that a function works on.",
        *group_note,
        "// `Ops` supplies, always inlined, each issuing what the schedule counted for it and no wait of its own:",
        *(f"//   {each}" for each in supplied),
        *form.notes(),
        *contract(compiled),
        "#pragma once",
        *words,
        "",
        "template <class Ops>",
        f"__attribute__((device, always_inline)) inline void {name}(Ops& ops, int trips{groups}) {{",
        *phases[Phase.PROLOGUE],
        f"  int k = {program.tiles_per_trip};",
        "  #pragma clang loop unroll(disable)",
        "  for (; trips > 0; --trips) {",
        *(f"  {line}" for line in phases[Phase.KERNEL]),
        f"    k += {program.tiles_per_trip};",
        "  }",
        *phases[Phase.EPILOGUE],
        "}",
        *(f"#undef {name}" for name in macros(words)),
        "",
    ]
    return "\n".join(lines)


def check_calls(form: ProgramForm, entries: Sequence[Entry]) -> None:
    """One call stands for one op: what reads or writes other places must be called by other numbers."""
    known: dict[FunctionCall, Entry] = {}
    for entry in entries:
        call = form.call(entry, 0)
        first = known.setdefault(call, entry)
        if (first.effect.reads, first.effect.writes) != (entry.effect.reads, entry.effect.writes):
            raise miscounted(
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
        why = f"{entry.phase.at(entry.time_slot)} {entry.op}"
        if entry.op.is_framework:
            text = sync_text(program, entry)
            reason = sync_reason(program, entry, reasons)
            why += f": {reason}" if reason else ""
        else:
            text = f"{form.call(entry, tile).text('' if phase is Phase.PROLOGUE else 'k')} ROTA_FENCE"
        yield f"  {text}".ljust(_COMMENT_COLUMN) + comment(why)
