"""What matters for wait states: the registers and traits of an instruction, as its `Spacing`."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from rota.isa.disassembly import VSKIP, Instruction
from rota.isa.opcodes import IsaUnit, MemVerb, Trait, has_full_masks
from rota.isa.registers import EXEC_ROWS, M0_ROWS, NO_ROWS, SCC_ROWS, VCC_ROWS, Rows, rows_in, scalar_rows, vector_rows
from rota.program.machine import Confidence, Fact
from rota.targets.architecture import ANY, SOURCES, Architecture, Hazards, Pipe, WaitRule


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """A requirement: wait states between two instructions that share `rows`, by the name of its rule in `Hazards`."""

    states: int
    rows: Rows
    why: str
    rule: str
    fact: Fact
    reads: bool = False  # the second one reads the rows
    matrix: bool = False  # the rows are an MFMA's results: a later MFMA that writes them takes its place

    @property
    def source(self) -> str:
        return SOURCES.get(self.fact.confidence, self.fact.confidence.value)

    @property
    def required(self) -> bool:
        """True for rules of the manual and measured ones, False for those of LLVM alone."""
        return self.fact.confidence is not Confidence.COMPILER_MODEL


class RowSets(dict[str, Rows]):
    """The rows that a rule may name, in which an instruction gives or takes something; worked out when asked for."""

    def __init__(self, spacing: Spacing) -> None:
        super().__init__()
        self._spacing = spacing

    def __missing__(self, name: str) -> Rows:
        rows = self[name] = _ROW_SETS[name](self._spacing)
        return rows


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Spacing:
    """The registers and traits of one instruction that wait states depend on.

    `reads` are explicit sources (of an MFMA: factors, scales, index); `sums` is the addend of an MFMA or dot product
    and `sum_range` its first row and length; `held` the data of a wide store; `select` the rows of a lane select. Of
    `reads`, `masks` are read only as mask or carry, `exchanged` are the lanes that DPP moves, `kept` is the old target
    where lanes may keep it. `zeros` are the registers whose zero flags are read, `ends` the scalar registers that it
    overwrites for sure. `classes` and `rows` are what the rules of an architecture name. `known` caches the needs of
    pairs that start with this instruction.
    """

    opcode: str
    unit: IsaUnit
    states: int = 1
    reads: Rows = NO_ROWS
    sums: Rows = NO_ROWS
    sum_range: tuple[int, int] = (-1, 0)
    writes: Rows = NO_ROWS
    write_range: tuple[int, int] = (-1, 0)
    held: Rows = NO_ROWS
    select: Rows = NO_ROWS
    masks: Rows = NO_ROWS
    exchanged: Rows = NO_ROWS
    kept: Rows = NO_ROWS
    zeros: Rows = NO_ROWS
    ends: Rows = NO_ROWS
    traits: Trait = Trait.NONE
    hwreg: str = ""
    pipe: Pipe | None = None
    passes: int = 0
    large: bool = False  # of products of float64: 16x16
    reach: int = 0  # wait states after it within which something may come too early
    classes: frozenset[str] = frozenset()
    rows: RowSets = field(init=False, repr=False)
    known: dict[Spacing, tuple[Need, ...]] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "rows", RowSets(self))

    @property
    def all_reads(self) -> Rows:
        return self.reads | self.sums


# Decoding asks the table of opcodes only, so that instructions which the interpreter lacks have wait states too.

_HWREG = re.compile(r"hwreg\((?P<name>\w+)(?:, *(?P<first>\d+), *(?P<bits>\d+))?")
_WHOLE = re.compile(r"^(?:quad_perm|row_ror|row_newbcast|row_mirror|row_half_mirror|wave_ro[lr]|bound_ctrl)")
_MASKED = frozenset({"cndmask", "addc", "subb", "subbrev"})  # their third source is a mask or carry


_UNITS = {
    IsaUnit.VALU: "valu", IsaUnit.MATRIX: "mfma", IsaUnit.VMEM: "vmem", IsaUnit.LDS: "lds",
    IsaUnit.SALU: "salu", IsaUnit.CONTROL: "salu",
}  # fmt: skip


@lru_cache(maxsize=1024)
def _classes(unit: IsaUnit, traits: Trait, hwreg: str, pipe: Pipe | None, form: str = "") -> frozenset[str]:
    """What the rules of an architecture ask of an instruction: its unit, its traits, the register that it sets."""
    found = {(trait.name or "").lower().replace("_", " ") for trait in traits}
    found |= {_UNITS.get(unit, ""), hwreg, form}
    computes = unit.computes_lanes
    for name, holds in (
        ("vector", unit.is_vector),
        ("valu or mfma", computes),
        ("as valu", computes or Trait.TO_LDS in traits),
        ("double", pipe is Pipe.DOUBLE),
    ):
        found |= {name} if holds else set()
    return frozenset(found - {""})


def _constants(spacing: Spacing) -> Rows:
    implied = EXEC_ROWS | M0_ROWS if spacing.unit is IsaUnit.VMEM else NO_ROWS
    divisor = VCC_ROWS if Trait.DIVISION in spacing.traits else NO_ROWS
    return spacing.all_reads - spacing.masks - implied - divisor


_ROW_SETS: dict[str, Callable[[Spacing], Rows]] = {
    "reads": lambda spacing: spacing.reads,
    "writes": lambda spacing: spacing.writes,
    "all reads": lambda spacing: spacing.all_reads,
    "named": lambda spacing: spacing.all_reads | spacing.writes,
    "scalar writes": lambda spacing: scalar_rows(spacing.writes),
    "vector writes": lambda spacing: vector_rows(spacing.writes),
    "plain scalar writes": lambda spacing: scalar_rows(spacing.writes) - EXEC_ROWS - M0_ROWS,
    "implied writes": lambda spacing: spacing.writes & (EXEC_ROWS | M0_ROWS),
    "exec written": lambda spacing: EXEC_ROWS if spacing.writes & EXEC_ROWS else NO_ROWS,
    "exec": lambda _: EXEC_ROWS,
    "vcc": lambda _: VCC_ROWS,
    "m0": lambda _: M0_ROWS,
    "constants": _constants,
    "masks": lambda spacing: spacing.masks,
    "select": lambda spacing: spacing.select,
    "zeros": lambda spacing: spacing.zeros,
    "exchanged": lambda spacing: spacing.exchanged,
    "kept": lambda spacing: spacing.kept,
    "other reads": lambda spacing: spacing.all_reads - spacing.exchanged - spacing.kept,
    "held": lambda spacing: spacing.held,
}


def is_of(classes: frozenset[str], wanted: tuple[str, ...]) -> bool:
    """True if an instruction is of all classes that are wanted, and of none with `not` in front."""
    return all((name[4:] not in classes) if name[:4] == "not " else name in classes for name in wanted)


@lru_cache(maxsize=1024)
def _rules_after(hazards: Hazards, classes: frozenset[str]) -> tuple[WaitRule, ...]:
    return tuple(rule for rule in hazards.rules if rule.after and is_of(classes, rule.after))


def _reach(first: Spacing, hazards: Hazards) -> int:
    """An upper bound on the wait states that any later instruction must keep."""
    rules = _rules_after(hazards, first.classes)
    most = max((rule.states.value for rule in rules if not rule.gives or first.rows[rule.gives]), default=0)
    if first.unit is IsaUnit.MATRIX and not hazards.by_vectors:
        late = first.passes + max(hazards["result"].value, hazards["overlap"].value, 2)
        return max(most, late, hazards["double_large"].value, hazards["double_large_memory"].value)
    return most


def spacing_of(instruction: Instruction, architecture: Architecture) -> Spacing:
    spec, registers = instruction.spec, instruction.registers
    fields: dict[str, Any] = {
        "reads": registers.reads - registers.flags - SCC_ROWS,
        "writes": registers.writes - SCC_ROWS,
        "traits": spec.traits,
    }
    if architecture.hazards.by_vectors:
        fields["states"] = int(spec.unit.computes_lanes)
    if spec.unit is IsaUnit.MATRIX:
        _add_matrix(fields, instruction, architecture)
    elif spec.unit is IsaUnit.VALU:
        _add_vector(fields, instruction)
    elif spec.unit is IsaUnit.VMEM:
        _add_memory(fields, instruction)
    elif spec.unit is not IsaUnit.LDS:
        _add_scalar(fields, instruction, by_vectors=architecture.hazards.by_vectors)
    elif "gds" in instruction.modifiers:
        fields["traits"] |= Trait.USES_M0
    form = fields.pop("form", "")
    classes = _classes(spec.unit, fields["traits"], fields.get("hwreg", ""), fields.get("pipe"), form)
    spacing = Spacing(opcode=instruction.opcode, unit=spec.unit, classes=classes, **fields)
    return replace(spacing, reach=reach) if (reach := _reach(spacing, architecture.hazards)) else spacing


_FORMATS, _NARROW = ("matrix_a_fmt", "matrix_b_fmt"), frozenset({"MATRIX_FMT_FP4"})


def _range(rows: Rows) -> tuple[int, int]:
    return (min(rows), len(rows)) if rows else (-1, 0)


def _bits(instruction: Instruction, name: str) -> list[str]:
    return instruction.fields[name].strip("[]").split(",") if name in instruction.fields else []


def _add_matrix(fields: dict[str, Any], instruction: Instruction, architecture: Architecture) -> None:
    form = next((each for each in architecture.matrix_forms if each.name == instruction.opcode), None)
    operands = [rows_in(text) for text in instruction.operands]
    if form is None or len(operands) < 4:  # the interpreter refuses it; nothing is known of its time
        return
    target, left, right, third, *scales = operands
    sums = target if form.sparse else third
    if architecture.hazards.by_vectors:  # its rules are about the factors and the product, by how long it takes
        narrow = form.narrow_passes
        few = narrow is not None and all(instruction.fields.get(name, "") in _NARROW for name in _FORMATS)
        taken = form.passes if narrow is None or not few else narrow
        fields.update(
            reads=left | right | (third if form.sparse else NO_ROWS), sums=sums,
            form=f"{'sparse ' if form.sparse else ''}{taken.value} clocks",
        )  # fmt: skip
        return
    passes = form.passes.value
    if form.left == ANY and form.narrow_passes is not None:
        wide = any(int(instruction.fields.get(name, "0")) < 2 for name in ("cbsz", "blgp"))
        passes = passes if wide else form.narrow_passes.value
    fields.update(
        reads=NO_ROWS.union(left, right, *scales, third if form.sparse else NO_ROWS),
        sums=sums,
        sum_range=_range(sums),
        write_range=_range(target),
        pipe=form.pipe,
        passes=passes,
        large=form.rows > 4,
    )


def _add_vector(fields: dict[str, Any], instruction: Instruction) -> None:
    spec, traits, writes = instruction.spec, instruction.spec.traits & ~Trait.PACKED, fields["writes"]
    operands = [rows_in(text) for text in instruction.operands]
    sources = operands[spec.targets :]
    named = NO_ROWS.union(*sources)
    reads, sums, masks, select, kept = fields["reads"], NO_ROWS, NO_ROWS, NO_ROWS, NO_ROWS
    if not spec.tied and Trait.LANE not in traits:  # what a target keeps isn't read, but written around
        reads -= instruction.registers.kept - named
    if Trait.DOT in traits:
        sums = sources[2] if len(sources) > 2 else writes
        reads = NO_ROWS.union(*sources[:2])
    if instruction.is_dpp:
        traits |= Trait.DPP
        whole = any(_WHOLE.match(each) for each in instruction.modifiers)  # else some lanes have no source
        if not (whole and has_full_masks(instruction.fields)):
            kept = vector_rows(writes)
            reads |= kept
    if spec.words[0] in _MASKED:
        masks = NO_ROWS.union(*sources[2:]) - NO_ROWS.union(*sources[:2])
    if Trait.LANE in traits and len(operands) > 2:
        select = scalar_rows(operands[2])
    if _writes_a_part(instruction):
        traits |= Trait.PARTIAL
    if _is_packed(instruction):
        traits |= Trait.PACKED
    fields.update(
        reads=reads,
        sums=sums,
        sum_range=_range(sums),
        write_range=_range(writes),
        select=select,
        masks=masks,
        exchanged=vector_rows(NO_ROWS.union(*sources[:1])) if Trait.DPP in traits else NO_ROWS,
        kept=kept,
        zeros=instruction.registers.flags,
        traits=traits,
        ends=scalar_rows(writes),
        form="nop" if spec.root == "nop" else "",
    )


def _writes_a_part(instruction: Instruction) -> bool:
    fields, spec = instruction.fields, instruction.spec
    if instruction.is_sdwa or "dst_sel" in fields:
        return fields.get("dst_sel", "") not in {"", "DWORD"}
    if spec.words[0] == "cvt" and spec.words[-2:] == ("sr", "pk") and spec.types[0] == "fp4":  # whatever its bits
        return True
    select = _bits(instruction, "op_sel")
    if Trait.PACKED in spec.traits:
        return False
    if spec.words[0] == "cvt" and spec.words[-1] == "sr" and spec.types[0] in {"fp8", "bf8"}:  # by bytes
        return "1" in select[2:]
    return len(select) > 1 and select[-1] == "1" and len(select) == len(instruction.operands)


def _is_packed(instruction: Instruction) -> bool:
    """True if the first bit of a packed instruction's op_sel_hi is set, which is the default, but for mixed ones."""
    if Trait.PACKED not in instruction.spec.traits:
        return False
    high = _bits(instruction, "op_sel_hi")
    mixed = instruction.spec.words[-1].startswith("mix")
    return (high[0] if high else "0" if mixed else "1") == "1"


def _add_memory(fields: dict[str, Any], instruction: Instruction) -> None:
    access, traits, held = instruction.spec.access, instruction.spec.traits, NO_ROWS
    if access is not None and access.verb is not MemVerb.LOAD:
        buffer, operands = access.buffer, instruction.operands
        place = 0 if buffer else 2 if instruction.returns else 1
        data = vector_rows(rows_in(operands[place])) if len(operands) > place else NO_ROWS
        held = data if len(data) > 2 else NO_ROWS
        if held and buffer and len(operands) > 3 and rows_in(operands[3]):
            traits |= Trait.BY_OFFSET
    if instruction.to_lds:
        traits |= Trait.TO_LDS | Trait.USES_M0 | (Trait.UNLISTED if access and access.buffer else Trait.NONE)
    fields.update(reads=fields["reads"] | EXEC_ROWS, held=held, traits=traits, ends=scalar_rows(fields["writes"]))


def _add_scalar(fields: dict[str, Any], instruction: Instruction, *, by_vectors: bool) -> None:
    spec, found = instruction.spec, _HWREG.search(instruction.text)
    states, traits = int(not by_vectors), spec.traits
    if spec.name == "s_nop" and not by_vectors:
        states = int(instruction.operands[0], 0) + 1
    if Trait.SETS_MODE in traits and found is not None and found["name"] == "HW_REG_MODE":
        first, bits = int(found["first"] or 0), int(found["bits"] or 32)
        traits |= Trait.SETS_VSKIP if first <= VSKIP < first + bits else Trait.NONE
    ends = NO_ROWS if Trait.MAY_WRITE in traits else scalar_rows(fields["writes"])
    hwreg = found["name"] if found else ""
    fields.update(reads=NO_ROWS, states=states, ends=ends, traits=traits, hwreg=hwreg)


NOTHING = Spacing(opcode="", unit=IsaUnit.UNKNOWN)
