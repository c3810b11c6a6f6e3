"""A check for each matrix instruction: takes a seed, fails if the interpreter and the plain definition differ.

`CHECKS` has one per architecture and opcode, for whoever tests all instructions.  Factors are small numbers whose sums
fit the result exactly, so equality is asked for; then any bits, within the bound that `rota.isa.matrix` states.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from rota.targets.architecture import ANY, Architecture, Float8, MatrixForm, Pipe
from rota.targets.cdna3 import CDNA3
from rota.targets.cdna4 import CDNA4
from tests.isa.matrix_oracle import BY_NUMBER, DECODE, WIDTH, Case
from tests.isa.single import codes, execute, fresh

SMALL = tuple(Fraction(each, 2) for each in range(-6, 7))
A, B, C, D, INDEX, SCALE = 0, 16, 64, 128, 48, 50  # where the operands are; those of A in VGPRs, D may be in AGPRs
Modifiers = Mapping[str, Any]
_INVERSE: dict[str, dict[Fraction, int]] = {}


def encoded(kind: str, value: Fraction) -> int:
    """The bits of a small number."""
    packs = {"f16": "<e", "f32": "<f", "xf32": "<f", "f64": "<d"}
    if kind in packs:
        return int.from_bytes(struct.pack(packs[kind], float(value)), "little")
    if kind == "bf16":
        return int.from_bytes(struct.pack("<f", float(value)), "little") >> 16
    if kind not in _INVERSE:
        width = WIDTH[kind.rsplit(maxsplit=1)[-1]]
        _INVERSE[kind] = {DECODE[kind](code): code for code in reversed(range(1 << width))}
    return _INVERSE[kind][value]


def variants(form: MatrixForm, rng: random.Random) -> Iterator[Modifiers]:
    """Modifiers to try: none, and some of each that the form has."""
    yield {}
    if form.broadcasts:
        for cbsz in range(1, form.blocks.bit_length()):
            yield {"cbsz": cbsz, "abid": rng.randrange(1 << cbsz)}
    if form.permutes:
        for blgp in range(1, 8):
            yield {"blgp": blgp}
        if form.broadcasts:
            yield {"cbsz": 1, "abid": 1, "blgp": rng.randrange(1, 8)}
    if form.pipe is Pipe.DOUBLE:
        for bits in range(1, 8):
            yield {"negate": (bits & 1, bits >> 1 & 1, bits >> 2)}
    if form.sparse:
        sets = 32 // (form.rows * form.depth // 64)
        yield from ({"abid": abid} for abid in range(1, sets))
        yield {"cbsz": 1}
    if form.left == ANY:
        for left in BY_NUMBER:
            for right in BY_NUMBER:
                more = {"scale_bytes": (rng.randrange(4), rng.randrange(4))} if form.scaled else {}
                yield {"left": left, "right": right, **more}


def text_of(form: MatrixForm, case: Case, counts: tuple[int, int, int], literal: str, acc: str) -> str:
    """The instruction as llvm-objdump prints it."""

    def registers(file: str, first: int, count: int) -> str:
        return f"{file}{first}" if count == 1 else f"{file}[{first}:{first + count - 1}]"

    a, b, d = counts
    third = f"v{INDEX}" if form.sparse else literal or registers("v", C, d)
    scales = f", v{SCALE}, v{SCALE + 1}" if form.scaled else ""
    numbers = {"cbsz": case.cbsz, "abid": case.abid, "blgp": case.blgp}
    if form.left == ANY:
        numbers = {"cbsz": BY_NUMBER.index(case.left), "blgp": BY_NUMBER.index(case.right)}
    fields = [f"{name}:{number}" for name, number in numbers.items() if number]
    if form.scaled:
        low, high = zip(*((byte & 1, byte >> 1) for byte in case.scale_bytes), strict=True)
        fields = [f"op_sel:[{low[0]},{low[1]},0]", f"op_sel_hi:[{high[0]},{high[1]},0]", *fields]
    if any(case.negate):
        fields.append("neg:[{},{},{}]".format(*case.negate))
    target = registers("v" if form.sparse else acc, D if acc == "v" or form.sparse else D - 64, d)
    return f"{form.name} {target}, {registers('v', A, a)}, {registers('v', B, b)}, {third}{scales} {' '.join(fields)}"


def made(form: MatrixForm, architecture: Architecture, rng: random.Random, *, exact: bool, more: Modifiers) -> Case:
    """A case with drawn registers."""
    float8 = "ocp" if architecture.float8 is Float8.OCP else "fnuz"
    kinds = [str(more.get(side, getattr(form, side) if form.left != ANY else "fp8")) for side in ("left", "right")]
    names = [f"{float8} {kind}" if kind in {"fp8", "bf8"} else kind for kind in kinds]
    per_lane = [form.rows * form.depth * form.blocks // 64 // (2 if form.sparse else 1)]
    per_lane.append(form.columns * form.depth * form.blocks // 64)

    def drawn(kind: str, name: str) -> int:
        if kind == "i8":
            return rng.randrange(256)
        if exact or kind == "f64":
            return encoded(name, rng.choice([each for each in SMALL if kind != "fp4" or abs(each) != Fraction(5, 2)]))
        if kind in {"fp6", "bf6", "fp4"}:
            return rng.randrange(1 << WIDTH[kind])
        return encoded(name, rng.choice(SMALL)) if kind in {"fp8", "bf8"} else _some(kind, rng)

    lanes = [
        [
            sum(drawn(kind, name) << at * WIDTH[kind] for at in range(count))
            for _ in range(64)
        ]
        for kind, name, count in zip(kinds, names, per_lane, strict=True)
    ]  # fmt: skip
    items = form.rows * form.columns * form.blocks // 64
    width = 64 if form.total == "f64" else 32

    def total() -> int:
        if form.total == "i32":
            return rng.randrange(1 << 32)
        return encoded(form.total, Fraction(rng.randrange(-9, 10)))

    added = [sum(total() << at * width for at in range(items)) for _ in range(64)]
    index = [
        sum(rng.choice((0b0100, 0b1000, 0b1100, 0b1001, 0b1101, 0b1110)) << 4 * at for at in range(8))
        for _ in range(64)
    ]
    scales = [[sum(rng.randrange(125, 130) << 8 * at for at in range(4)) for _ in range(64)] for _ in range(2)]
    fields = {key: value for key, value in more.items() if key not in {"left", "right"}}
    return Case(
        form=form, float8=float8, a=lanes[0], b=lanes[1], c=added, left=kinds[0], right=kinds[1], index=index,
        scale_a=scales[0], scale_b=scales[1], **fields,
    )  # fmt: skip


def _some(kind: str, rng: random.Random) -> int:
    value = rng.gauss(0, 1)
    bits = int.from_bytes(struct.pack("<f", value), "little")
    if kind == "f16":
        return int.from_bytes(struct.pack("<e", value), "little")
    return {"bf16": bits >> 16, "xf32": bits & 0xFFFF_E000}.get(kind, bits)


def run(case: Case, *, literal: str = "", acc: str = "v", arch: str) -> list[int]:
    """What the interpreter makes of it: per lane, the result's registers as one integer."""
    form = case.form
    items = form.rows * form.columns * form.blocks // 64
    d = items * (2 if form.total == "f64" else 1)
    a = form.rows * form.depth * form.blocks * WIDTH[case.left] // 64 // 32 // (2 if form.sparse else 1)
    b = form.columns * form.depth * form.blocks * WIDTH[case.right] // 64 // 32
    wave = fresh()

    def put(first: int, lanes: Sequence[int], count: int) -> None:
        for register in range(count):
            words = [lane >> 32 * register & 0xFFFF_FFFF for lane in lanes]
            wave.v[first + register] = np.array(words, np.uint32)

    put(A, case.a, a)
    put(B, case.b, b)
    put(D if form.sparse else C, case.c if not isinstance(case.c, Fraction) else [0] * 64, d)
    put(INDEX, case.index, 1)
    put(SCALE, case.scale_a, 1)
    put(SCALE + 1, case.scale_b, 1)
    execute(text_of(form, case, (a, b, d), literal, acc), wave, arch)
    assert codes(wave) == []
    first = D if acc == "v" or form.sparse else 256 + D - 64
    return [sum(int(wave.v[first + register, lane]) << 32 * register for register in range(d)) for lane in range(64)]


def compare(case: Case, result: list[int], rng: random.Random, *, exact: bool, places: int | None) -> None:
    """All elements of the result, or some of them."""
    form = case.form
    width = 64 if form.total == "f64" else 32
    every = [(i, j, b) for b in range(form.blocks) for i in range(form.rows) for j in range(form.columns)]
    for i, j, block in every if places is None else rng.sample(every, min(places, len(every))):
        lane, at = case.where(i, j, block)
        got = DECODE[form.total](result[lane] >> at * width & (1 << width) - 1)
        wanted, size = case.exact(i, j, block)
        if form.total == "i32":
            wanted = Fraction((int(wanted) + (1 << 31)) % (1 << 32) - (1 << 31))
        bound = 0 if exact or form.total == "i32" else (form.depth + 1) * size / (1 << 24)
        assert abs(got - wanted) <= bound, (form.name, case.cbsz, case.abid, case.blgp, (i, j, block), got, wanted)


def check(
    form: MatrixForm, architecture: Architecture, seed: int, places: int | None = 12, most: int | None = None
) -> int:
    """Every variant of an instruction, or at most so many; gives how many were run."""
    rng = random.Random(f"{form.name} {architecture.name} {seed}")
    count, chosen = 0, list(variants(form, rng))
    if most is not None and len(chosen) > most:
        chosen = rng.sample(chosen, most)
    for more in chosen:
        for exact in (True, False):
            case = made(form, architecture, rng, exact=exact, more=more)
            acc = rng.choice("va")
            result = run(case, arch=architecture.name, acc=acc)
            compare(case, result, rng, exact=exact, places=places)
            count += 1
    return count


CHECKS: dict[tuple[str, str], Callable[..., int]] = {
    (architecture.name, form.name): partial(check, form, architecture)
    for architecture in (CDNA3, CDNA4)
    for form in architecture.matrix_forms
}
