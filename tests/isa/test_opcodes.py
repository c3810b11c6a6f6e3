"""The table of opcodes, judged by executing: what isn't read has no effect, and what isn't written stays."""

from __future__ import annotations

import random
from collections.abc import Iterator

import numpy as np
import pytest

from rota.isa.decoded import decode
from rota.isa.disassembly import CodeLine, Instruction, instruction_of
from rota.isa.opcodes import IsaFlow, IsaUnit, opcode_named, traffic_of, wait_counts
from rota.isa.registers import EXEC, M0, SCALAR, SCC, SCC_ROWS, rows_in
from rota.isa.wave.wave import Step, Wave
from rota.targets.architecture import Traffic
from rota.targets.cdna4 import CDNA4
from rota.targets.registry import architecture_named
from tests.isa.every_opcode import every_instruction, executes
from tests.isa.single import fresh

MODIFIED = (
    "v_mov_b32_dpp v8, v16 quad_perm:[2,3,0,1] row_mask:0xf bank_mask:0xf",
    "v_mov_b32_dpp v8, v16 row_shr:1 row_mask:0xf bank_mask:0xf bound_ctrl:1",
    "v_add_u32_dpp v8, v16, v48 row_ror:3 row_mask:0x5 bank_mask:0xf bound_ctrl:1",
    "v_and_b32_sdwa v8, v16, v48 dst_sel:BYTE_1 dst_unused:UNUSED_PRESERVE src0_sel:DWORD src1_sel:WORD_1",
    "v_and_b32_sdwa v8, v16, v48 dst_sel:BYTE_1 dst_unused:UNUSED_PAD src0_sel:DWORD src1_sel:WORD_1",
    "v_mad_u16 v8, v16, v48, v96 op_sel:[0,1,0,1]",
    "v_fma_f16 v8, v16, v48, v96 op_sel:[1,0,0,1]",
    "v_cvt_pk_fp8_f32 v8, v16, v48 op_sel:[0,0,1]",
    "v_cvt_sr_bf8_f32 v8, v16, v48 op_sel:[0,0,1,1]",
    "v_cndmask_b32_e64 v8, v16, v48, src_vccz",
    "s_add_u32 s8, src_scc, s16",
    "ds_read2st64_b64 v[8:11], v96 offset0:1 offset1:2",
)
_MASKS = (0xFFFF_FFFF_FFFF_FFFF, 0x0F0F_3333_FFFF_0001)


def _instructions(arch: str) -> Iterator[Instruction]:
    for each in every_instruction(arch).values():
        if each.spec.flow is IsaFlow.NEXT and executes(each, arch):
            yield each
    yield from (_parsed(text) for text in MODIFIED)


def _parsed(text: str) -> Instruction:
    return instruction_of(CodeLine(number=1, text=text, follows=0))


class _Content:
    """What a wave's rows hold, of which a part can be drawn anew."""

    def __init__(self, draw: random.Random, exec_mask: int) -> None:
        numbers = np.random.default_rng(draw.randrange(1 << 30))
        self.vectors = numbers.integers(0, 64, (CDNA4.vector_rows, 64), np.uint32) * np.uint32(16)
        self.scalars = [draw.getrandbits(32) if draw.random() < 0.5 else draw.getrandbits(9) * 4 for _ in range(128)]
        self.scalars[EXEC], self.scalars[EXEC + 1] = exec_mask & 0xFFFF_FFFF, exec_mask >> 32
        self.scc = draw.getrandbits(1)

    def wave(self) -> Wave:
        wave = fresh(buffers=(np.arange(64, dtype=np.uint8),))
        wave.v[:] = self.vectors
        wave.s[:] = self.scalars
        wave.scc = self.scc
        wave.lds.bytes[:] = np.arange(len(wave.lds.bytes)) * 37 % 251
        wave.update_mask()
        return wave

    def changed(self, rows: set[int], draw: random.Random) -> _Content:
        other = _Content(draw, self.scalars[EXEC] | self.scalars[EXEC + 1] << 32)
        mixed = _Content(draw, 0)
        vectors = range(CDNA4.vector_rows)
        mixed.vectors = np.array([(other if row in rows else self).vectors[row] for row in vectors])
        mixed.scalars = [
            (other if SCALAR + number in rows else self).scalars[number] for number in range(len(self.scalars))
        ]
        mixed.scc = 1 - self.scc if SCALAR + SCC in rows else self.scc
        return mixed


def _after(step: Step, content: _Content) -> dict[int, bytes]:
    wave = content.wave()
    with np.errstate(all="ignore"):
        step.act(wave)
        wave.wait("vmcnt", 0)
        wave.wait("lgkmcnt", 0)
    held = {row: wave.v[row].tobytes() for row in range(CDNA4.vector_rows)}
    return {**held, **{SCALAR + at: bytes(str(value), "ascii") for at, value in enumerate(wave.s)},
            SCALAR + SCC: bytes([wave.scc])}  # fmt: skip


EVERYTHING = {*range(CDNA4.vector_rows), *(SCALAR + number for number in range(EXEC)), SCALAR + SCC}


@pytest.mark.thorough  # runs for seconds
@pytest.mark.parametrize("arch", ["gfx942", "gfx950"])
def test_reads_and_writes_are_those_of_the_execution(arch: str) -> None:
    architecture = architecture_named(arch)
    assert architecture is not None
    draw, seen = random.Random(35), 0
    for instruction in _instructions(arch):
        step = decode(instruction, architecture, {instruction.follows or 0: 0})
        for mask in _MASKS:
            first = _Content(draw, mask)
            if instruction.spec.name in {"s_movrels_b32", "s_movrels_b64", "s_movreld_b32", "s_movreld_b64"}:
                first.scalars[M0] = 0  # else it uses registers that it doesn't name
            second = first.changed(EVERYTHING - step.sources, draw)
            before, made, again = _after(_NOTHING, first), _after(step, first), _after(step, second)
            wrong = [row for row in made if made[row] != before[row] and row not in step.results]
            assert not wrong, (instruction.text, "writes", wrong)
            unlike = [row for row in step.results if _active(made, row, mask) != _active(again, row, mask)]
            assert not unlike, (instruction.text, "depends on more than it reads", unlike)
        seen += 1
    assert seen > 900


def _active(held: dict[int, bytes], row: int, mask: int) -> bytes:
    """What the active lanes hold; the others keep what they had, which nobody reads."""
    if row >= SCALAR:
        return held[row]
    return bytes(held[row][at] for at in range(256) if mask >> at // 4 & 1)


_NOTHING = decode(_parsed("s_nop 0"), CDNA4)


@pytest.mark.parametrize(
    ("text", "reads", "writes"),
    [
        ("buffer_atomic_add v8, v96, s[48:51], s16 offen sc0", "v8 v96 s[48:51] s16", "v8"),
        ("buffer_atomic_cmpswap v[8:9], v96, s[48:51], s16 offen sc0", "v[8:9] v96 s[48:51] s16", "v8"),
        ("s_buffer_store_dword s8, s[16:19], 0x40", "s8 s[16:19]", ""),
        ("buffer_load_short_d16 v8, v96, s[48:51], s16 offen", "v8 v96 s[48:51] s16", "v8"),
        ("buffer_load_dword v96, s[48:51], s16 offen lds", "v96 s[48:51] s16 m0", ""),
        ("v_cvt_pk_bf16_f32 v8, v16, v48", "v16 v48", "v8"),
        ("v_cvt_pk_fp8_f32 v8, v16, v48", "v8 v16 v48", "v8"),
        ("v_cmpx_lt_u32_e64 s[8:9], v16, v48", "v16 v48", "s[8:9] exec"),
        ("s_and_saveexec_b64 s[8:9], s[16:17]", "s[16:17] exec", "s[8:9] exec scc"),
        ("s_cbranch_vccz 4", "vcc", ""),
    ],
)
def test_what_an_instruction_reads_and_writes(text: str, reads: str, writes: str) -> None:
    def rows(names: str) -> frozenset[int]:
        return rows_in(names.replace("scc", "")) | (SCC_ROWS if "scc" in names else frozenset())

    registers = _parsed(text).registers
    assert (registers.reads, registers.writes) == (rows(reads), rows(writes))


@pytest.mark.parametrize(
    ("name", "unit", "traffic"),
    [
        ("ds_read_b64_tr_b16", IsaUnit.LDS, Traffic.LDS),
        ("ds_load_b128", IsaUnit.LDS, Traffic.LDS),
        ("ds_bpermute_b32", IsaUnit.LDS, Traffic.LDS),
        ("global_load_lds_dwordx4", IsaUnit.VMEM, Traffic.TO_LDS),
        ("global_store_b64", IsaUnit.VMEM, Traffic.STORE),
        ("flat_atomic_add_f64", IsaUnit.VMEM, Traffic.STORE),
        ("s_load_dwordx2", IsaUnit.SMEM, Traffic.SCALAR),
        ("s_memtime", IsaUnit.SMEM, Traffic.SCALAR),
        ("s_dcache_inv", IsaUnit.SMEM, None),
        ("v_mfma_f32_16x16x16_f16", IsaUnit.MATRIX, None),
        ("made_up", IsaUnit.UNKNOWN, None),
    ],
)
def test_unit_and_counter_of_an_opcode(name: str, unit: IsaUnit, traffic: Traffic | None) -> None:
    spec = opcode_named(name)
    assert (spec.unit, traffic_of(spec, ())) == (unit, traffic)
    assert spec.known == (unit is not IsaUnit.UNKNOWN)


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        ("s_waitcnt vmcnt(0) lgkmcnt(3)", {"vmcnt": 0, "lgkmcnt": 3}),
        ("s_waitcnt 0xf70", {"vmcnt": 0}),
        ("s_waitcnt vmcnt(63)", {}),
        ("s_waitcnt expcnt(0)", {}),
    ],
)
def test_what_a_wait_leaves_in_flight(text: str, counts: dict[str, int]) -> None:
    assert wait_counts(opcode_named("s_waitcnt"), text, CDNA4) == counts


def test_a_wait_in_words_that_nobody_knows_is_refused() -> None:
    with pytest.raises(ValueError, match="cnt"):
        wait_counts(opcode_named("s_waitcnt"), "s_waitcnt vmcnt", CDNA4)
