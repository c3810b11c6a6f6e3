"""Loops that lanes leave one by one: takes a squad at a branch on EXEC, gives its masks as functions of one unknown.

Each round takes lanes out of EXEC by a new unknown mask, so that no state would repeat.  What is left of EXEC becomes
one unknown mask.  Masks that are the rest of it, such as the lanes that have left, stay just that: when no lane is
left, they are known again.
"""

from __future__ import annotations

from rota.prove.evaluation import Evaluator
from rota.prove.lane_mask import Mask, atoms_of
from rota.prove.squad import Half, Squad
from rota.prove.symbol import LANE


def condense(one: Evaluator, squad: Squad) -> None:
    """Makes EXEC depend on one unknown, and other masks on the same where they are equal to it or its rest."""
    old = squad.exec
    if len(atoms_of(old)) < 2:
        return
    masks = one.masks
    possible = masks.leaf(masks.possible(old))
    atom = one.symbols.fresh("left", LANE).base
    new = masks.combine("and", possible, masks.unknown(atom, len(squad.waves)))
    turned: dict[Mask, Mask] = {old: new}
    for row, value in squad.registers.items():
        if not isinstance(value, Half):
            continue
        mask = value.mask
        if mask not in turned:
            whole = masks.combine("or", possible, masks.leaf(masks.possible(mask)))
            rest = masks.combine("andn2", whole, old)
            turned[mask] = masks.combine("andn2", whole, new) if rest is mask else one.tamed(mask, 1)
        squad.registers[row] = Half(turned[mask], value.which)
    squad.exec = new


def assume_empty(one: Evaluator, squad: Squad) -> None:
    """No lane is left in EXEC: what that says of its unknown is put into all masks."""
    masks, mask = one.masks, squad.exec
    nothing = masks.leaf((0,) * len(squad.waves))
    squad.exec = nothing
    if mask.atom is None or mask.high is None or mask.low is None:
        return
    if (
        mask.high.leaf is None
        or mask.low.leaf is None
        or any(a & b for a, b in zip(mask.high.leaf, mask.low.leaf, strict=True))
    ):
        return
    atom = masks.unknown(mask.atom, len(squad.waves))
    known = masks.combine("or", mask.low, masks.combine("andn2", atom, mask.high))
    for row, value in squad.registers.items():
        if isinstance(value, Half) and mask.atom in atoms_of(value.mask):
            squad.registers[row] = Half(masks.substituted(value.mask, {mask.atom: known}), value.which)
