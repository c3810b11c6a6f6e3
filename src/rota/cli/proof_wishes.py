"""How machine code is to be proved: takes options of a command, gives `Wishes`: policies, budget, what may pass."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from rota.cli.baseline import KnownFinding, read_baseline
from rota.prove.meter import STEPS_PER_SECOND, Budget

if TYPE_CHECKING:
    from rota.prove.kernel_proof import Policies

Command = TypeVar("Command", bound=Callable[..., object])


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """Policies and assumptions by their words, limits, verdicts that pass, known findings."""

    lds_reads: str = "strict"
    vmcnt: str = "in-order"
    steps: int = Budget().steps
    seconds: float | None = None
    assume: tuple[str, ...] = ()
    allow: tuple[str, ...] = ()
    baseline: Path | None = None
    write_baseline: Path | None = None

    @property
    def usual(self) -> bool:
        """Is nothing asked for that only machine code has?"""
        return self == Wishes()

    def policies(self) -> Policies:
        """For the proof."""
        from rota.prove.kernel_proof import Policies, ReadsAtBarrier, VmcntOrder

        return Policies(
            reads=ReadsAtBarrier.STRICT if self.lds_reads == "strict" else ReadsAtBarrier.LENIENT,
            order=VmcntOrder.IN_ORDER if self.vmcnt == "in-order" else VmcntOrder.ANY_ORDER,
            lds_in_bounds="lds-in-bounds" in self.assume,
        )

    def budget(self) -> Budget:
        """For the proof of one kernel."""
        return Budget(steps=self.steps, seconds=self.seconds)

    def known(self) -> tuple[KnownFinding, ...]:
        """Findings that are no news."""
        return () if self.baseline is None else read_baseline(self.baseline)


def proof_options(command: Command) -> Command:
    """Adds what concerns machine code alone; the command takes it as `wishes`."""

    @functools.wraps(command)
    def wished(**named: Any) -> object:  # whatever the command takes
        mine = {name: named.pop(name) for name in Wishes.__dataclass_fields__}
        return command(**named, wishes=Wishes(**mine))

    options = (
        click.option(
            "--lds-reads",
            type=click.Choice(["strict", "lenient"]),
            default="strict",
            help="Of machine code: is an LDS read over when its wave passes a barrier without a wait for it?",
        ),
        click.option(
            "--vmcnt",
            type=click.Choice(["in-order", "any-order"]),
            default="in-order",
            help="Of machine code: do vector memory ops return in the order of their issue?",
        ),
        click.option(
            "--steps",
            type=click.IntRange(1, 10**12),
            default=Budget().steps,
            show_default=True,
            help="Of machine code: steps for one kernel, the same on every machine; "
            f"{STEPS_PER_SECOND:,} take about a second.",
        ),
        click.option(
            "--seconds",
            type=click.FloatRange(0.1, 86_400),
            help="Of machine code: end a proof after so many CPU seconds, too; the verdict then names that limit.",
        ),
        click.option(
            "--assume",
            type=click.Choice(["lds-in-bounds"]),
            multiple=True,
            help="Of machine code: LDS addresses that come from data lie inside; the verdict names it.",
        ),
        click.option(
            "--allow",
            type=click.Choice(["inconclusive"]),
            multiple=True,
            help="Of machine code: a verdict that doesn't fail the run.",
        ),
        click.option(
            "--baseline",
            type=click.Path(path_type=Path),
            help="Of machine code: a file of known findings; only others fail the run.",
        ),
        click.option(
            "--write-baseline",
            type=click.Path(path_type=Path),
            help="Of machine code: write what is found to a file of known findings.",
        ),
    )
    for option in reversed(options):
        wished = option(wished)
    return wished  # type: ignore[return-value]  # of the same kind as the command
