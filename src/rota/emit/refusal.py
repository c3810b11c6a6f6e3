"""Why no GEMM is written: takes a message and what shows it, gives the `EmissionError` to raise."""

from __future__ import annotations

from collections.abc import Iterable

from rota.errors import Concern, EmissionError, Finding
from rota.program.kinds import OpKind

SKELETON = "`rota emit KERNEL --form skeleton` writes the order of any loop, with calls of your own functions"
_DOCUMENT = "`rota emit KERNEL --form json` writes any schedule, for an emitter of your own"

Evidence = Iterable[tuple[str, str | int]]


def unfit(
    message: str, *, concerns: Iterable[Concern] = (), evidence: Evidence = (), fixes: Iterable[str] = ()
) -> EmissionError:
    """Nothing is wrong with the schedule, but no GEMM kernel is written for it."""
    return _refusal("T203", message, concerns, evidence, (*fixes, SKELETON))


def no_product(
    message: str, *, concerns: Iterable[Concern] = (), evidence: Evidence = (), fixes: Iterable[str] = ()
) -> EmissionError:
    """The schedule has the parts of a GEMM and computes something else."""
    return _refusal("T206", message, concerns, evidence, (*fixes, SKELETON))


def no_gemm_op(op: object, kind: OpKind, *concerns: Concern) -> EmissionError:
    """An op is of a kind for which a GEMM has no instruction."""
    article = "an" if kind.word[0] in "aeiou" else "a"
    return unfit(
        f"{op} is {article} {kind.word} op: the full form writes GEMMs, which are loads to LDS, LDS reads and matrix "
        "ops",
        concerns=concerns,
        evidence=(("what it does", kind.does),),
    )


def miscounted(message: str, *, concerns: Iterable[Concern], evidence: Evidence, fixes: Iterable[str]) -> EmissionError:
    """An op says of itself what its instructions don't do."""
    return _refusal("T202", message, concerns, evidence, tuple(fixes))


def no_word(message: str, *, concerns: Iterable[Concern] = (), evidence: Evidence = ()) -> EmissionError:
    """Source can't say what the program does, in a GEMM or in a skeleton."""
    return _refusal("T207", message, concerns, evidence, (_DOCUMENT,))


def _refusal(
    code: str, message: str, concerns: Iterable[Concern], evidence: Evidence, fixes: tuple[str, ...]
) -> EmissionError:
    return EmissionError(
        Finding(code=code, message=message, concerns=tuple(concerns), evidence=tuple(evidence), fixes=fixes)
    )
