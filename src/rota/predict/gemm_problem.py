"""A GEMM to be computed: takes its sides as a user types them, gives a `GemmProblem`."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from rota.check import bad_field, check_ints, check_types
from rota.errors import DeclarationError, Finding

MOST = 2**24
_SIDES = re.compile(r"(\d+)x(\d+)x(\d+)")
_RESULT_BYTES = {"bf16": 2, "fp16": 2, "fp32": 4}


@dataclass(frozen=True, slots=True, kw_only=True)
class GemmProblem:
    """C (m x n) = A (m x k) times B (k x n); `result` is the type of C, and K may be split among workgroups."""

    m: int
    n: int
    k: int
    result: str = "bf16"
    split_k: int = 1

    def __post_init__(self) -> None:
        check_ints(self, ("m", "n", "k", "split_k"), least=1, most=MOST)
        check_types(self, {"result": str})
        if self.result not in _RESULT_BYTES:
            raise bad_field(self, "result", self.result, " or ".join(_RESULT_BYTES))
        if self.split_k > self.k:
            raise bad_field(self, "split_k", self.split_k, f"at most K, {self.k}")

    @property
    def flops(self) -> int:
        """Products and sums."""
        return 2 * self.m * self.n * self.k

    @property
    def result_bytes(self) -> int:
        """Of an element of C."""
        return _RESULT_BYTES[self.result]

    def but(self, *, m: int | None = None, n: int | None = None) -> GemmProblem:
        """The same problem with other sides."""
        return replace(self, m=self.m if m is None else m, n=self.n if n is None else n)

    def __str__(self) -> str:
        return f"{self.m}x{self.n}x{self.k}" + (f" split {self.split_k}" if self.split_k > 1 else "")


def problem_named(text: str, *, split_k: int = 1) -> GemmProblem:
    """MxNxK as a user types it."""
    found = _SIDES.fullmatch(text.strip().lower().replace("*", "x").replace(",", "x"))
    if found is None:
        raise DeclarationError(
            Finding(
                code="D102",
                message=f"the problem is {text!r:.60}; expected MxNxK, as 8192x8192x8192",
                evidence=(("got", f"{text:.60}"), ("expected", "three whole numbers with x between them")),
            )
        )
    m, n, k = map(int, found.groups())
    return GemmProblem(m=m, n=n, k=k, split_k=split_k)
