"""Small kernels around each hazard: takes nothing, gives HIP sources in which clang has to insert wait states."""

from __future__ import annotations

from tests.isa.test_hazards import CHAINS, mfma_kernel
from tests.isa.test_matrix import SHAPES

BOTH = ("gfx942", "gfx950")
_KINDS = {
    "division": "KERNEL(const float* a, float* o) { o[ID] = a[ID] / a[ID + 64]; }",
    "division of doubles": "KERNEL(const double* a, double* o) { o[ID] = a[ID] / a[ID + 64]; }",
    "square root": "KERNEL(const float* a, float* o) { o[ID] = __builtin_sqrtf(a[ID]) + 1.0f; }",
    "transcendentals": (
        "KERNEL(const float* a, float* o) { float x = a[ID]; o[ID] = __builtin_amdgcn_exp2f(x) * 3.0f; "
        "o[ID + 64] = __builtin_amdgcn_rcpf(x) + x; o[ID + 128] = __builtin_amdgcn_logf(x) - x; "
        "o[ID + 192] = __builtin_amdgcn_sinf(x) * x; }"
    ),
    "selects": "KERNEL(const int* a, int* o, int n) { int x = a[ID], y = a[ID + 64]; o[ID] = x > y ? x * 3 : y + n; "
    "o[ID + 64] = (x == n) ? y : (y < n ? x : n); }",
    "sums with carry": "KERNEL(const u64* a, u64* o) { o[ID] = a[ID] + a[ID + 64]; o[ID + 64] = a[ID] - a[ID + 128]; }",
    "lane by number": (
        "KERNEL(const int* a, int* o, const int* n) { int x = a[ID]; int l = __builtin_amdgcn_readfirstlane(n[ID]); "
        "o[ID] = __builtin_amdgcn_readlane(x, l) + __builtin_amdgcn_readlane(x * 3, l & 31); }"
    ),
    "first lane": "KERNEL(const int* a, int* o) { o[ID] = __builtin_amdgcn_readfirstlane(a[ID] * 5) + ID; }",
    "vote": "KERNEL(const int* a, u64* o) { o[ID] = __builtin_amdgcn_ballot_w64(a[ID] > 3) + ID; }",
    "data parallel": (
        "KERNEL(const float* a, float* o) { float x = a[ID]; "
        "for (int i = 0; i < 3; i++) x += __builtin_bit_cast(float, __builtin_amdgcn_update_dpp("
        "0, __builtin_bit_cast(int, x), 0x111, 0xf, 0xf, false)); o[ID] = x; }"
    ),
    "a scan": (
        "KERNEL(const int* a, int* o) { int x = a[ID] * 3; x += __builtin_amdgcn_mov_dpp(x, 0xb1, 0xf, 0xf, true);"
        " x += __builtin_amdgcn_mov_dpp(x, 0x4e, 0xf, 0xf, true); o[ID] = x; }"
    ),
    "8-bit floats": (
        "KERNEL(const float* a, int* o) { int x = __builtin_amdgcn_cvt_pk_fp8_f32(a[ID], a[ID + 64], 0, false);"
        " x = __builtin_amdgcn_cvt_pk_fp8_f32(a[ID + 128], a[ID + 192], x, true); o[ID] = x + 7; }"
    ),
    "8-bit floats by chance": (
        "KERNEL(const float* a, int* o) { int x = __builtin_amdgcn_cvt_sr_fp8_f32(a[ID], o[ID], 0, 0);"
        " x = __builtin_amdgcn_cvt_sr_fp8_f32(a[ID + 64], o[ID], x, 1);"
        " x = __builtin_amdgcn_cvt_sr_fp8_f32(a[ID + 128], o[ID], x, 2);"
        " x = __builtin_amdgcn_cvt_sr_bf8_f32(a[ID + 192], o[ID], x, 3); o[ID] = x + 7; }"
    ),
    "halves": (
        "KERNEL(const vec<f16, 2>* a, vec<f16, 2>* o) { vec<f16, 2> x = a[ID], y = a[ID + 64]; "
        "vec<f16, 2> z = {(f16)(x[1] + y[0]), (f16)(x[0] * y[1])}; o[ID] = z; }"
    ),
    "bytes": "KERNEL(const u8* a, u8* o) { u8 x = a[ID], y = a[ID + 64]; o[ID] = (x & 0xf) | (y << 4); "
    "o[ID + 64] = x * y + (x >> 3); }",
    "packed": (
        "KERNEL(const vec<float, 2>* a, float* o) { vec<float, 2> x = a[ID] * a[ID + 64] + a[ID + 128]; "
        "o[ID] = x[0] + x[1]; }"
    ),
    "dot products": (
        "KERNEL(const vec<f16, 2>* a, float* o) { float x = __builtin_amdgcn_fdot2(a[ID], a[ID + 64], 1.0f, false); "
        "x = __builtin_amdgcn_fdot2(a[ID], a[ID + 128], x, false); o[ID] = x * 2.0f; }"
    ),
    "wide stores": (
        "KERNEL(vec<float, 4>* o, float n) { vec<float, 4> x = {n, n, n, n}; for (int i = 0; i < 4; i++)"
        " { o[ID + i * 64] = x; x *= n; x += 1.0f; } }"
    ),
    "mode": "KERNEL(const float* a, float* o) { __builtin_amdgcn_s_setreg(2049, 3); o[ID] = a[ID] * 3.0f; "
    "__builtin_amdgcn_s_setreg(2049, 0); o[ID + 64] = __builtin_amdgcn_s_getreg(2049); }",
    "message": "KERNEL(int n) { __builtin_amdgcn_s_sendmsg(1, n); }",
    "doubles": (
        "KERNEL(const double* a, vec<double, 4>* o) { vec<double, 4> c = {}; double x = a[ID] * 3.0;"
        " c = __builtin_amdgcn_mfma_f64_16x16x4f64(x, x, c, 0, 0, 0);"
        " c = __builtin_amdgcn_mfma_f64_16x16x4f64(c[0], x, c, 0, 0, 0); o[ID] = c * 2.0; }"
    ),
    "small doubles": (
        "KERNEL(const double* a, double* o) { double c = 0, x = a[ID];"
        " c = __builtin_amdgcn_mfma_f64_4x4x4f64(x, x, c, 0, 0, 0);"
        " c = __builtin_amdgcn_mfma_f64_4x4x4f64(x, x, c, 0, 0, 0);"
        " c = __builtin_amdgcn_mfma_f64_4x4x4f64(c, x, c, 0, 0, 0); o[ID] = c; o[ID + 64] = __builtin_fma(c, x, x); }"
    ),
    "small blocks": (
        "KERNEL(const float* a, vec<float, 4>* o) { vec<float, 4> c = {}; float x = a[ID];"
        " c = __builtin_amdgcn_mfma_f32_4x4x1f32(x, x, c, 0, 0, 0);"
        " c = __builtin_amdgcn_mfma_f32_4x4x1f32(x, x, c, 0, 0, 0); o[ID] = c + x; }"
    ),
    "sparse": (
        "KERNEL(const vec<f16, 4>* a, const vec<f16, 8>* b, vec<float, 4>* o, const int* i) { vec<float, 4> c = o[ID];"
        " c = __builtin_amdgcn_smfmac_f32_16x16x32_f16(a[ID], b[ID], c, i[ID] * 3, 0, 0);"
        " c = __builtin_amdgcn_smfmac_f32_16x16x32_f16(a[ID], b[ID], c, i[ID], 0, 0); o[ID] = c + 1.0f; }"
    ),
    "load to LDS": (
        "KERNEL(const __attribute__((address_space(1))) u32* a, u32* o, int n) { SHARED u32 l[4096];"
        " for (int i = 0; i < 4; i++) __builtin_amdgcn_global_load_lds((__attribute__((address_space(1))) void*)"
        "(a + ID + i * 64), (LDS void*)(l + i * 64 + n * 64), 4, 0, 0);"
        " __builtin_amdgcn_s_waitcnt(0); o[ID] = l[ID]; }"
    ),
    "a buffer by lane": CHAINS["a scalar from a lane"][1],
}  # fmt: skip
_NEWER = {
    "lanes exchanged": (
        "KERNEL(const u32* a, vec<u32, 2>* o) { u32 x = a[ID] * 3, y = a[ID + 64] + 1;"
        " auto r = __builtin_amdgcn_permlane32_swap(x, y, false, false);"
        " auto q = __builtin_amdgcn_permlane16_swap(r[0] + 1, r[1], false, false); o[ID] = q; }"
    ),
    "4-bit floats": (
        "KERNEL(const float* a, u32* o, float s) { u32 x = __builtin_amdgcn_cvt_scalef32_pk_fp4_f32("
        "0, a[ID], a[ID + 64], s, 0); x = __builtin_amdgcn_cvt_scalef32_pk_fp4_f32(x, a[ID], a[ID + 64], s, 2);"
        " o[ID] = x + 1; }"
    ),
    "4-bit floats by chance": (
        "KERNEL(const vec<float, 2>* a, u32* o, float s) { u32 x = __builtin_amdgcn_cvt_scalef32_sr_pk_fp4_f32("
        "0, a[ID], o[ID], s, 0); o[ID] = x + 1; }"
    ),
    "scaled products": (
        "KERNEL(const vec<int, 8>* a, vec<float, 4>* o, const int* s) { vec<float, 4> c = {};"
        " c = __builtin_amdgcn_mfma_scale_f32_16x16x128_f8f6f4(a[ID], a[ID + 64], c, 0, 4, 1, s[ID] * 3, 0, s[ID]);"
        " o[ID] = c * 2.0f; }"
    ),
}  # fmt: skip


def sources() -> dict[tuple[str, str], str]:
    """By architecture and name."""
    found = {(arch, name): source for name, source in _KINDS.items() for arch in BOTH}
    found |= {("gfx950", name): source for name, source in _NEWER.items()}
    found |= {(arch, name): source for name, (arch, source) in CHAINS.items()}
    found |= {(shape.arch, f"{shape.builtin} {shape.kind}"): mfma_kernel(shape) for shape in SHAPES}
    return found
