"""Matrix instructions that an architecture has: takes shapes and formats, gives a `MatrixForm` for each.

Shapes and formats are those of the assembler, passes those of LLVM's scheduling model.  Layouts, modifiers and index
sets follow from the form (AMD, CDNA3 ISA manual, "Matrix Arithmetic Instructions", and AMD's matrix instruction
calculator); what CDNA4 adds is documented by AMD's article on matrix core programming.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from itertools import product

from rota.program.machine import Confidence, Fact

_PASSES = "LLVM 22, scheduling model of the matrix pipeline"
_BITS = {"f32": 32, "xf32": 32, "f64": 64, "f16": 16, "bf16": 16, "i8": 8, "fp8": 8, "bf8": 8}
ANY = "f8f6f4"
"""Instead of a format: each operand's own, by a field of the instruction."""


class Pipe(enum.Enum):
    """Which of three kinds of matrix instruction, told apart where wait states are due."""

    XDL = "products of up to 16 bits and of xf32"
    SINGLE = "products of float32"
    DOUBLE = "products of float64"


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixForm:
    """One matrix instruction: sides, depth and blocks of its product, formats of its factors and of its sum.

    `narrow_passes` are those where neither factor is wider than 6 bits, of instructions that take any format.
    """

    name: str
    rows: int
    columns: int
    depth: int
    blocks: int
    left: str
    right: str
    total: str
    passes: Fact
    narrow_passes: Fact | None = None
    sparse: bool = False
    scaled: bool = False

    @property
    def pipe(self) -> Pipe:
        """Where its wait states come from."""
        return {"f64": Pipe.DOUBLE, "f32": Pipe.SINGLE}.get(self.left, Pipe.XDL)

    @property
    def broadcasts(self) -> bool:
        """Do cbsz and abid give one block of A to several?"""
        return self.blocks > 1 and self.pipe is not Pipe.DOUBLE and not self.sparse

    @property
    def permutes(self) -> bool:
        """Does blgp permute the lanes of B?"""
        return self.broadcasts or self.pipe is Pipe.SINGLE


def dense(shape: str, left: str, right: str, passes: int, *, total: str = "f32") -> MatrixForm:
    """An MFMA, by its shape as it is written: 32x32x4_2b."""
    types = left if left == right else f"{left}_{right}"
    if {left, right} <= {"fp8", "bf8"}:
        types = f"{left}_{right}"
    return _form(f"v_mfma_{total}_{shape}_{types}", shape, (left, right, total), passes)


def sparse(shape: str, left: str, right: str, passes: int, *, total: str = "f32") -> MatrixForm:
    """A multiplication whose A has two of four elements."""
    types = left if left == right and left not in {"fp8", "bf8"} else f"{left}_{right}"
    return _form(f"v_smfmac_{total}_{shape}_{types}", shape, (left, right, total), passes, sparse=True)


def any_format(shape: str, passes: int, narrow: int, *, scaled: bool) -> MatrixForm:
    """An MFMA whose fields say what its factors are."""
    name = f"v_mfma_{'scale_' if scaled else ''}f32_{shape}_{ANY}"
    return _form(name, shape, (ANY, ANY, "f32"), passes, narrow=narrow, scaled=scaled)


def _form(
    name: str,
    shape: str,
    kinds: tuple[str, str, str],
    passes: int,
    *,
    narrow: int | None = None,
    sparse: bool = False,
    scaled: bool = False,
) -> MatrixForm:
    sides, _, blocks = shape.partition("_")
    rows, columns, depth = (int(part) for part in sides.split("x"))
    left, right, total = kinds
    return MatrixForm(
        name=name,
        rows=rows,
        columns=columns,
        depth=depth,
        blocks=int(blocks.removesuffix("b") or "1"),
        left=left,
        right=right,
        total=total,
        passes=_passes(passes),
        narrow_passes=None if narrow is None else _passes(narrow),
        sparse=sparse,
        scaled=scaled,
    )


def _passes(count: int) -> Fact:
    return Fact(count, "passes of 4 clocks", Confidence.COMPILER_MODEL, _PASSES)


def _halves(shape: str, passes: int) -> tuple[MatrixForm, ...]:
    return tuple(dense(shape, kind, kind, passes) for kind in ("f16", "bf16"))


def _eighths(shape: str, passes: int) -> tuple[MatrixForm, ...]:
    return tuple(dense(shape, left, right, passes) for left, right in product(("fp8", "bf8"), repeat=2))


def _sparse_all(halves: str, octets: str, passes: int) -> tuple[MatrixForm, ...]:
    return (
        *(sparse(halves, kind, kind, passes) for kind in ("f16", "bf16")),
        sparse(octets, "i8", "i8", passes, total="i32"),
        *(sparse(octets, left, right, passes) for left, right in product(("fp8", "bf8"), repeat=2)),
    )


def shared(large_double: int) -> tuple[MatrixForm, ...]:
    """What CDNA3 and CDNA4 have in common; they differ in the passes of the large product of float64."""
    return (
        *(dense(shape, "f32", "f32", passes) for shape, passes in (
            ("32x32x1_2b", 16), ("16x16x1_4b", 8), ("4x4x1_16b", 2), ("32x32x2", 16), ("16x16x4", 8),
        )),
        *(form for shape, passes in (
            ("32x32x4_2b", 16), ("16x16x4_4b", 8), ("4x4x4_16b", 2), ("32x32x8", 8), ("16x16x16", 4),
        ) for form in _halves(shape, passes)),
        *(dense(shape, "i8", "i8", passes, total="i32") for shape, passes in (
            ("32x32x4_2b", 16), ("16x16x4_4b", 8), ("4x4x4_16b", 2), ("32x32x16", 8), ("16x16x32", 4),
        )),
        *_eighths("32x32x16", 8),
        *_eighths("16x16x32", 4),
        dense("16x16x4", "f64", "f64", large_double, total="f64"),
        dense("4x4x4_4b", "f64", "f64", 4, total="f64"),
        *_sparse_all("16x16x32", "16x16x64", 4),
        *_sparse_all("32x32x16", "32x32x32", 8),
    )  # fmt: skip


CDNA3_FORMS = (
    *shared(large_double=8),
    dense("16x16x8", "xf32", "xf32", 4),
    dense("32x32x4", "xf32", "xf32", 8),
)
CDNA4_FORMS = (
    *shared(large_double=16),
    *_halves("16x16x32", 4),
    *_halves("32x32x16", 8),
    dense("16x16x64", "i8", "i8", 4, total="i32"),
    dense("32x32x32", "i8", "i8", 8, total="i32"),
    *(any_format("16x16x128", 8, 4, scaled=scaled) for scaled in (False, True)),
    *(any_format("32x32x64", 16, 8, scaled=scaled) for scaled in (False, True)),
    *_sparse_all("16x16x64", "16x16x128", 4),
    *_sparse_all("32x32x32", "32x32x64", 8),
)
