"""The answer of a modulo scheduler: takes an II and start slots, gives a `ModuloSchedule` with its certificate."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field

from rota.errors import several
from rota.order.modulo.mii import MII

ANY_HORIZON = "schedules of any length"


class ModuloProof(enum.Enum):
    """What is known about a schedule's initiation interval."""

    MEETS_BOUND = "II = MII"  # the bound itself is the proof
    REFUTED = "every smaller II is infeasible"  # each from MII on was refuted, under the certificate's horizon
    OPEN = "open"  # some II from `lower` on was neither met nor refuted


@dataclass(frozen=True, slots=True, kw_only=True)
class ModuloCertificate:
    """What is proved: no schedule has an II below `lower`, by `mii` and by a refutation of each II in `refuted`.

    `horizon` says which schedules the refutations are about, `limits`, in words, which of a loop's schedules the whole
    is about: "at most 16 copies of X".  Without limits it is about all.  A time-out refutes nothing: it leaves a proof
    open.
    """

    proof: ModuloProof
    mii: MII
    lower: int
    refuted: tuple[int, ...] = ()
    horizon: str = ANY_HORIZON
    by: str = ""
    limits: tuple[str, ...] = ()
    seconds: float = field(default=0.0, compare=False)  # equal schedules stay equal, however long they took

    @property
    def optimal(self) -> bool:
        """No schedule within the limits has a smaller II."""
        return self.proof is not ModuloProof.OPEN

    @property
    def scope(self) -> str:
        """The limits as the end of a claim; nothing where there are none."""
        return f" with {', '.join(self.limits)}" if self.limits else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModuloSchedule:
    """Op i of iteration n starts at starts[i] + n x ii; the earliest op stands in stage 0.

    `about` is what the certificate was derived for; without it, as in a document, these are only the terms of a claim.
    """

    ii: int
    starts: tuple[int, ...]
    certificate: ModuloCertificate
    about: object = field(default=None, compare=False, repr=False)

    @property
    def slots(self) -> tuple[int, ...]:
        """Where in the loop each op stands: its start modulo II."""
        return tuple(start % self.ii for start in self.starts)

    @property
    def stages(self) -> tuple[int, ...]:
        """How many turns of the loop after its iteration began each op runs."""
        return tuple(start // self.ii for start in self.starts)

    @property
    def stage_count(self) -> int:
        """How many iterations are under way at once."""
        return max(self.stages, default=0) + 1

    def __str__(self) -> str:
        certificate = self.certificate
        text = f"II {self.ii:,}, {several(self.stage_count, 'stage')}, "
        if certificate.optimal and certificate.lower != self.ii:
            return text + f"not shown: its certificate is about II {certificate.lower:,}"
        if certificate.proof is ModuloProof.MEETS_BOUND:
            return text + f"least possible{certificate.scope}: {certificate.mii}"
        if certificate.proof is ModuloProof.REFUTED:
            first, last = certificate.refuted[0], certificate.refuted[-1]
            span = f"{first:,}" if first == last else f"{first:,}..{last:,}"
            why = f"II {span} refuted for {certificate.horizon}; {certificate.mii}"
            return text + f"least possible{certificate.scope}: {why}"
        between = f"the least II{certificate.scope} lies in {certificate.lower:,}..{self.ii:,}"
        return text + f"open: {between}; {certificate.mii}"
