"""Memory instructions that are not modelled, or that a machine doesn't have, are refused before anything runs."""

from __future__ import annotations

import pytest

from rota.isa.registers import M0
from tests.findings.smallest import raised
from tests.isa.single import codes, execute, fresh, loaded


@pytest.mark.parametrize(
    "text",
    [
        "ds_append v0",
        "ds_consume v0",
        "ds_gws_init v0",
        "ds_gws_barrier v0 gds",
        "ds_ordered_count v0, v1 gds",
        "ds_read_addtid_b32 v0",
        "ds_write_addtid_b32 v0",
        "ds_wrxchg2_rtn_b32 v[0:1], v2, v3, v4",
        "ds_wrxchg_b32 v0, v1",  # there is no such form
        "ds_condxchg32_rtn_b64 v[0:1], v2, v[4:5]",
        "ds_cmpst_f32 v0, v1, v2",
        "ds_add_u16 v0, v1",
        "ds_and_u32 v0, v1",
        "ds_read_b48 v[0:1], v2",
        "ds_swizzle_b32 v0, v1 offset:swizzle(ROTATE,0,9)",
        "ds_swizzle_b32 v0, v1 offset:swizzle(FFT,3)",
        "ds_swizzle_b32 v0, v1 offset:0xe003",
        "ds_read_b32 v0, v1 gds",
        "buffer_load_format_x v0, v1, s[4:7], 0 offen",
        "buffer_load_dword v0, v1, s[4:7], 0 offen tfe",
        "buffer_store_dword v0, s[4:7], 0 offen lds",
        "tbuffer_load_format_x v0, v1, s[4:7], 0 offen",
        "global_load_lds_ushort v[0:1], off",
        "global_load_byte v0, v[2:3], off",
        "global_store_ubyte v[2:3], v0, off",
        "global_store_short_d16 v[2:3], v0, off",
        "global_atomic_add_f16 v[2:3], v0, off",
        "global_atomic_add_f32_x2 v[2:3], v[4:5], off",
        "global_atomic_cmpswap v[2:3], v0, off",  # one number where two are due
        "flat_load_lds_dword v[0:1]",
        "scratch_load_lds_dword off, s0",
        "scratch_atomic_add v0, v1, off",
        "s_atomic_cmpswap s[4:5], s[2:3], 0x0",
        "s_store_dwordx8 s[8:15], s[2:3], 0x0",
        "s_atc_probe 1, s[2:3], 0x0",
        "s_scratch_load_dword s0, s[2:3], 0x0",
        "ds_read_b64_tr_b6 v[0:1], v2",
    ],
)
def test_what_is_not_modelled_is_refused(text: str) -> None:
    raised("I102", lambda: loaded(text))


@pytest.mark.parametrize(
    "text",
    [
        "ds_read_b64_tr_b16 v[0:1], v2",
        "ds_read_b64_tr_b8 v[0:1], v2",
        "ds_read_b64_tr_b4 v[0:1], v2",
        "ds_read_b96_tr_b6 v[0:2], v4",
        "buffer_atomic_pk_add_bf16 v0, v1, s[4:7], 0 offen",
        "global_load_lds_dwordx4 v[0:1], off",
        "buffer_load_dwordx3 v1, s[4:7], 0 offen lds",
    ],
)
def test_what_only_the_later_machine_has(text: str) -> None:
    loaded(text, "gfx950")
    raised("I102", lambda: loaded(text, "gfx942"))


@pytest.mark.parametrize(("arch", "found"), [("gfx942", []), ("gfx950", ["I105"])])
def test_bits_of_m0_that_a_load_to_lds_uses(arch: str, found: list[str]) -> None:
    """16 of them name all of LDS on the one machine; on the other one they don't."""
    wave = fresh({0: 0}, {4: 0, 5: 0, 6: 0, 7: 0, M0: 0x0005_0100})
    execute("buffer_load_dword v0, s[4:7], 0 offen lds\ns_waitcnt vmcnt(0)", wave, arch)
    assert codes(wave) == found
    assert (wave.lds.words[64:128] == 0).all() == (not found)
