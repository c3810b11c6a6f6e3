"""Right kernels and their wrong twins, as people write them in HIP: what is wrong isn't proved, what is right is.

`TOO_CAREFUL` are right kernels that the proof refuses, with what it lacks: where one of them is proved some day, it
moves.
"""

from __future__ import annotations

import pytest

from rota.isa.binary.toolchain import find_toolchain
from rota.prove.kernel_proof import prove_object
from rota.prove.verdict import Status, Verdict

HEAD = """
#define KERNEL(n) extern "C" __attribute__((global)) __attribute__((amdgpu_flat_work_group_size(n, n))) void
#define LDS static __attribute__((shared))
#define T ((int)__builtin_amdgcn_workitem_id_x())
#define WAVE ((int)__builtin_amdgcn_readfirstlane(T >> 6))
#define FENCE(order, scope) __builtin_amdgcn_fence(order, scope)
#define SYNC \\
    do { FENCE(__ATOMIC_RELEASE, "workgroup"); __builtin_amdgcn_s_barrier(); FENCE(__ATOMIC_ACQUIRE, "workgroup"); } \\
    while (0)
"""
TWINS = {  # a right kernel, what is changed in it, and what the wrong one has instead
    "two buffers": (
        """KERNEL(256) k(const int* x, int* y, int n) { LDS int b[2][256]; int s = 0; b[0][T] = x[T]; SYNC;
        for (int i = 1; i < n; i++) { b[i & 1][T] = x[256 * i + T]; s += b[(i - 1) & 1][255 - T]; SYNC; }
        y[T] = s; }""",
        "[(i - 1) & 1]", "[i & 1]",
    ),
    "a barrier behind the reads": (
        """KERNEL(128) k(const int* x, int* y, int n) { LDS int b[128]; int s = 0;
        for (int i = 0; i < n; i++) { b[T] = x[128 * i + T]; SYNC; s += b[127 - T]; SYNC; /**/ } y[T] = s; }""",
        "SYNC; /**/", "",
    ),
    "a barrier that all waves come to": (
        """KERNEL(256) k(const int* x, int* y) { LDS int b[256]; b[T] = x[T]; SYNC; y[T] = b[255 - T]; }""",
        "SYNC;", "if (T < 128) SYNC;",
    ),
    "one wave": (
        """KERNEL(64) k(const int* x, int* y) { LDS int b[256]; b[T] = x[T]; FENCE(__ATOMIC_SEQ_CST, "wavefront");
        y[T] = b[(T + 32) & 127]; }""",
        "KERNEL(64)", "KERNEL(128)",
    ),
    "a histogram of atomics": (
        """KERNEL(256) k(const int* x, int* y) { LDS int h[64]; if (T < 64) h[T] = 0; SYNC;
        __atomic_fetch_add(&h[x[T] & 63], 1, __ATOMIC_RELAXED); SYNC; if (T < 64) y[T] = h[T]; }""",
        "__atomic_fetch_add(&h[x[T] & 63], 1, __ATOMIC_RELAXED)", "h[x[T] & 63] += 1",
    ),
    "a histogram of bytes": (
        """KERNEL(256) k(const unsigned char* x, int* y) { LDS int h[256]; h[T] = 0; SYNC;
        __atomic_fetch_add(&h[x[T]], 1, __ATOMIC_RELAXED); SYNC; y[T] = h[T]; }""",
        "&h[x[T]]", "&h[x[T] + x[T + 1]]",
    ),
    "data that is clamped": (
        """KERNEL(64) k(const int* x, int* y) { LDS int b[64]; b[T] = 0; int i = x[T]; i = i < 0 ? 0 : i > 63 ? 63 : i;
        b[i] = T; y[T] = b[T]; }""",
        "i > 63 ? 63", "i > 64 ? 64",
    ),
    "data that is compared": (
        """KERNEL(64) k(const int* x, int* y) { LDS int b[64]; b[T] = 0; int i = x[T]; if (i >= 0 && i < 64) b[i] = T;
        y[T] = b[T]; }""",
        "i >= 0 && i < 64", "i < 64",
    ),
    "a path that an argument chooses": (
        """KERNEL(256) k(const int* x, int* y, int n) { LDS int b[256]; b[T] = x[T]; if (n != 7 || true) SYNC;
        y[T] = b[255 - T]; }""",
        " || true", "",
    ),
    "the last word": (
        """KERNEL(256) k(const int* x, int* y) { LDS int b[256]; b[T + 0] = x[T]; SYNC; y[T] = b[255 - T]; }""",
        "[T + 0]", "[T + 1]",
    ),
    "a tree": (
        """KERNEL(256) k(const int* x, int* y) { LDS int b[256]; b[T] = x[T]; SYNC;
        for (int s = 128; s > 0; s >>= 1) { if (T < s) b[T] += b[T + s]; SYNC; } if (T == 0) y[0] = b[0]; }""",
        "b[T + s]; SYNC;", 'b[T + s]; FENCE(__ATOMIC_SEQ_CST, "wavefront"); if (s == 64) SYNC;',
    ),
    "two roles": (
        """KERNEL(256) k(const int* x, int* y, int n) { LDS int b[2][128]; int u = T & 127;
        if (WAVE < 2) { for (int i = 0; i < n; i++) { b[i & 1][u] = x[128 * i + u]; SYNC; } }
        else { int s = 0; for (int i = 0; i < n; i++) { SYNC; s += b[i & 1][127 - u]; } y[u] = s; } }""",
        "i & 1", "0",
    ),
    "a loop over work": (
        """KERNEL(256) k(const int* x, int* y, int n) { LDS int b[256];
        for (int w = __builtin_amdgcn_workgroup_id_x(); w < n; w += 16) {
        b[T] = x[256 * w + T]; SYNC; y[256 * w + T] = b[255 - T]; SYNC; /**/ } }""",
        "SYNC; /**/", "",
    ),
    "a volatile pointer": (
        """KERNEL(256) k(const int* x, int* y) { LDS int b[256]; b[T] = x[T]; __builtin_amdgcn_s_waitcnt(0xc07f);
        __builtin_amdgcn_s_barrier(); y[T] = ((volatile int*)b)[255 - T]; }""",
        "__builtin_amdgcn_s_waitcnt(0xc07f);", "",
    ),
    "lanes that change places": (
        """KERNEL(128) k(const int* x, int* y) { LDS int b[128];
        int v = __builtin_amdgcn_ds_bpermute((63 - (T & 63)) * 4, x[T]);
        b[T] = v; SYNC; y[T] = b[T ^ 64]; }""",
        "SYNC;", "",
    ),
    "a place by an argument": (
        """KERNEL(128) k(const int* x, int* y, int n) { LDS int b[1024]; b[T] = x[T]; SYNC;
        int j = (n * 64 + T) & 1023; b[j] = T; SYNC; y[T] = b[127 - T]; }""",
        "& 1023", "& 63",
    ),
    "a ring that an argument turns": (
        """KERNEL(128) k(int* x, int* y, int n) { LDS int b[128]; b[(n + T) & 127] = x[T]; SYNC; y[T] = b[T]; }""",
        "SYNC;", "",
    ),
    "counts for each wave": (
        """KERNEL(128) k(const int* x, int* y, int n) { LDS int b[128]; b[T] = 0;
        for (int i = T; i < n; i += 128) b[WAVE * 64 + (x[i] & 63)]++; SYNC; y[T] = b[T ^ 64]; }""",
        "x[i] & 63", "x[i] & 127",
    ),
}  # fmt: skip


def judged(source: str) -> Verdict:
    (verdict,) = prove_object(find_toolchain().compile(HEAD + source, "gfx950").hsaco)
    return verdict


@pytest.mark.thorough  # compiles, or starts commands
@pytest.mark.parametrize("name", TWINS)
def test_the_right_one_is_proved(name: str) -> None:
    verdict = judged(TWINS[name][0])
    assert verdict.proved, verdict.findings


@pytest.mark.thorough  # compiles, or starts commands
@pytest.mark.parametrize("name", TWINS)
def test_the_wrong_one_is_not(name: str) -> None:
    source, right, wrong = TWINS[name]
    assert right in source
    verdict = judged(source.replace(right, wrong))
    assert verdict.status in {Status.REFUTED, Status.ALARM, Status.UNDECIDED}, verdict


@pytest.mark.thorough  # compiles, or starts commands
def test_a_launch_shows_what_an_argument_leaves_open() -> None:
    """The proof doesn't know how far apart the two places are; a launch brings them together."""
    source, right, wrong = TWINS["a ring that an argument turns"]
    verdict = judged(source.replace(right, wrong))
    assert (verdict.status, [each.code for each in verdict.findings]) == (Status.REFUTED, ["I109"])
