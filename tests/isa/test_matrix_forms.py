"""Every matrix instruction that the targets name, against a definition of its own, element by element."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest

from rota.errors import IsaError
from rota.targets.architecture import MatrixForm
from rota.targets.cdna3 import CDNA3
from rota.targets.cdna4 import CDNA4
from tests.isa.matrix_checks import CHECKS, compare, made, run
from tests.isa.single import loaded

pytestmark = pytest.mark.no_cover  # many cases: what they run is covered where it is tested by itself

FORMS = {(architecture.name, form.name): form for architecture in (CDNA3, CDNA4) for form in architecture.matrix_forms}


@pytest.mark.parametrize(("arch", "opcode"), CHECKS, ids=lambda each: each)
def test_a_matrix_instruction_multiplies_as_documented(arch: str, opcode: str) -> None:
    assert CHECKS[arch, opcode](1, places=4, most=1) == 2


@pytest.mark.parametrize(
    ("arch", "opcode"),
    [
        ("gfx942", "v_mfma_f32_16x16x1_4b_f32"),
        ("gfx942", "v_mfma_f32_4x4x4_16b_f16"),
        ("gfx942", "v_mfma_f64_4x4x4_4b_f64"),
        ("gfx950", "v_mfma_scale_f32_32x32x64_f8f6f4"),
        ("gfx950", "v_smfmac_i32_16x16x128_i8"),
    ],
)
def test_every_modifier_does_what_is_documented(arch: str, opcode: str) -> None:
    assert CHECKS[arch, opcode](2, places=3, most=10) >= 4


@pytest.mark.parametrize(("arch", "opcode"), sorted(FORMS)[::6], ids=lambda each: each)
def test_one_product_alone_comes_where_the_layout_says(arch: str, opcode: str) -> None:
    """One element of A is not zero, so one row of one block, or of those it is broadcast to, is all there is."""
    form, rng = FORMS[arch, opcode], random.Random(opcode)
    architecture = CDNA3 if arch == "gfx942" else CDNA4
    case = made(form, architecture, rng, exact=True, more={})
    lane = rng.randrange(64)
    alone = [bits if number == lane else 0 for number, bits in enumerate(case.a)]
    case = type(case)(**{name: getattr(case, name) for name in case.__dataclass_fields__} | {"a": alone})
    compare(case, run(case, arch=arch), rng, exact=True, places=24)


@pytest.mark.parametrize(
    ("opcode", "literal", "worth"),
    [
        ("v_mfma_f32_16x16x16_f16", "0", 0),
        ("v_mfma_f32_16x16x16_f16", "1.0", 1),
        ("v_mfma_f32_16x16x16_f16", "-4.0", -4),
        ("v_mfma_i32_16x16x32_i8", "1", 1),
        ("v_mfma_i32_16x16x32_i8", "-16", -16),
        ("v_mfma_i32_4x4x4_16b_i8", "64", 64),
        ("v_mfma_f64_16x16x4_f64", "0", 0),
        ("v_mfma_f64_16x16x4_f64", "-2.0", -2),
        ("v_mfma_f64_4x4x4_4b_f64", "0.5", Fraction(1, 2)),
    ],
)
def test_a_constant_can_be_added(opcode: str, literal: str, worth: Fraction) -> None:
    form, rng = FORMS["gfx942", opcode], random.Random(2)
    case = made(form, CDNA3, rng, exact=True, more={})
    case = type(case)(**{name: getattr(case, name) for name in case.__dataclass_fields__} | {"c": Fraction(worth)})
    compare(case, run(case, arch="gfx942", literal=literal), rng, exact=True, places=None)


@pytest.mark.parametrize(
    ("arch", "text"),
    [
        ("gfx950", "v_mfma_f32_16x16x8_xf32 v[0:3], v[4:5], v[6:7], v[0:3]"),
        ("gfx942", "v_mfma_f32_16x16x32_f16 v[0:3], v[4:7], v[8:11], v[0:3]"),
        ("gfx942", "v_mfma_f32_16x16x128_f8f6f4 v[0:3], v[4:11], v[12:19], v[0:3]"),
        ("gfx942", "v_smfmac_f32_16x16x64_f16 v[0:3], v[4:7], v[8:15], v20"),
        ("gfx942", "v_mfma_f32_16x16x16_f16 v[0:3], v[4:5], v[6:7], v[0:3] cbsz:1"),
        ("gfx942", "v_mfma_f32_16x16x16_f16 v[0:3], v[4:5], v[6:7], v[0:3] blgp:1"),
        ("gfx942", "v_mfma_f32_32x32x1_2b_f32 v[0:31], v40, v41, v[0:31] cbsz:2"),
        ("gfx942", "v_mfma_f32_32x32x1_2b_f32 v[0:31], v40, v41, v[0:31] cbsz:1 abid:2"),
        ("gfx942", "v_mfma_f64_16x16x4_f64 v[0:7], v[8:9], v[10:11], v[0:7] cbsz:1"),
        ("gfx942", "v_mfma_f32_16x16x16_f16 v[0:3], v[4:5], v[6:7], v[0:3] neg:[1,0,0]"),
        ("gfx942", "v_smfmac_f32_16x16x32_f16 v[0:3], v[4:5], v[8:11], v20 abid:4"),
        ("gfx942", "v_mfma_f32_16x16x16_f16 v[0:3], v[4:7], v[8:11], v[0:3]"),
        ("gfx950", "v_mfma_f32_16x16x128_f8f6f4 v[0:3], v[4:11], v[12:19], v[0:3] cbsz:4"),
        ("gfx950", "v_mfma_f32_16x16x128_f8f6f4 v[0:3], v[4:11], v[12:19], v[0:3] cbsz:5"),
        ("gfx950", "v_mfma_f32_16x16x128_f8f6f4 v[0:3], v[4:11], v[12:19], v[0:3] op_sel:[1,0,0]"),
    ],
)
def test_what_a_machine_has_not_or_nobody_documents_is_refused(arch: str, text: str) -> None:
    with pytest.raises(IsaError) as caught:
        loaded(text, arch)
    assert {finding.code for finding in caught.value.findings} == {"I102"}


def test_every_form_has_a_name_of_its_own() -> None:
    for forms in (CDNA3.matrix_forms, CDNA4.matrix_forms):
        names: list[str] = [form.name for form in forms]
        assert len(names) == len(set(names))
        assert all(isinstance(form, MatrixForm) for form in forms)
    assert (len(CDNA3.matrix_forms), len(CDNA4.matrix_forms)) == (46, 68)
