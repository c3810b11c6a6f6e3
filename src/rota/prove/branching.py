"""Branches: takes a squad at one and what its path has decided, gives where its waves go on, or what is to be decided.

What the whole workgroup shares is decided for all of its waves, anything else for each wave of its own.
"""

from __future__ import annotations

from rota.isa.wave.operand import named
from rota.prove.decisions import Decisions
from rota.prove.divergent_loops import assume_empty, condense
from rota.prove.evaluation import Evaluator
from rota.prove.one_wave import OneWave
from rota.prove.operation import SCC_ROW, Operation
from rota.prove.product_state import ProductState
from rota.prove.squad import Accesses, Squad
from rota.prove.symbol import GROUP, Linear, Symbol, Value

_VCC = named("vcc")


class ForkError(Exception):
    """An operation needs a decision first: about a condition, of these waves or of the whole workgroup.

    With `parts`, waves may go different ways by it, even if all of them share what it is about.
    """

    def __init__(self, condition: Symbol, waves: tuple[int, ...] = (), *, parts: bool = False) -> None:
        super().__init__()
        self.condition, self.waves, self.parts = condition, waves, parts or bool(waves)


class Branching:
    """Takes branches; one for a proof."""

    def __init__(self, one: Evaluator, accesses: Accesses, waves: int) -> None:
        self._one, self._accesses, self._one_wave = one, accesses, OneWave(one, waves)

    def branch(self, product: ProductState, squad: Squad, operation: Operation) -> bool:
        """Takes a branch; False if waves part at it, so that another squad has to go on now."""
        instruction = operation.instruction
        opcode, target = instruction.opcode, instruction.target
        assert target is not None  # noqa: S101
        if opcode == "s_branch":
            squad.at = target
            return True
        taken = self._taken(product, squad, operation)
        empty = None if "_exec" not in opcode else not opcode.endswith("nz")  # what is taken when no lane is left
        if isinstance(taken, bool):
            squad.at = target if taken else squad.at + 1
            if taken is empty:
                assume_empty(self._one, squad)
            return True
        rows = [[row for row, each in enumerate(taken) if each is wanted] for wanted in (True, False)]
        parts = [squad.part(each, self._one.masks, self._accesses) for each in rows]
        parts[0].at, parts[1].at = target, squad.at + 1
        if empty is not None:
            assume_empty(self._one, parts[0 if empty else 1])
        place = product.squads.index(squad)
        product.squads[place : place + 1] = sorted(parts, key=lambda part: -part.at)  # those that leave a loop first
        return False

    def _taken(self, product: ProductState, squad: Squad, operation: Operation) -> bool | list[bool]:
        opcode, known = operation.instruction.opcode, product.known
        if opcode == "s_setvskip":
            word, place = (self._one.read(squad, each, known) for each in operation.operands)
            flag = self._one.compute("and", self._one.compute("shr", word, self._one.compute("and", place, 31)), 1)
            wanted = not operation.instruction.modifiers
            flag = self._one.flag_of(self._one.compare("eq", "u", flag, int(wanted)))
            return self._outcome(squad, flag, known)
        if "_scc" in opcode:
            return self._outcome(squad, self._one.row(squad, SCC_ROW, known), known, wanted=opcode.endswith("1"))
        wanted = opcode.endswith("nz")
        if "_exec" not in opcode:
            return self._outcome(squad, self._one.any_of(self._one.pair(squad, _VCC, known)), known, wanted=wanted)
        squad.exec = self._one.masks.settled(squad.exec, known.decided)
        if isinstance(self._one.any_of(squad.exec), Linear):
            condense(self._one, squad)
        return self._outcome(squad, self._one.any_of(squad.exec), known, wanted=wanted)

    def _outcome(self, squad: Squad, flag: Value, known: Decisions, *, wanted: bool = True) -> bool | list[bool]:
        flag = self._one.settled(flag, known)
        if isinstance(flag, int):
            return bool(flag) == wanted
        if not isinstance(flag, Linear):
            outcomes = [bool(each) == wanted for each in flag[:, 0].tolist()]
            return outcomes[0] if len(set(outcomes)) == 1 else outcomes
        base = flag.base
        if base.op == "select":
            raise ForkError(base.args[0])  # type: ignore[arg-type]
        if not isinstance(flag.offset, int) or base.bits != 1 or flag.scale not in {1, 0xFFFF_FFFF}:
            flag = self._one.flag_of(self._one.compare("ne", "u", flag, 0))
            if not isinstance(flag, Linear):
                return self._outcome(squad, flag, known, wanted=wanted)
            base = flag.base
        positive = wanted == (flag.scale == 1)
        if base.spread == GROUP:
            decided = known.decided(base)
            if decided is None:
                raise ForkError(base)
            return decided == positive
        each = [self._of_wave(base, wave, known) for wave in squad.waves]
        open_ = tuple(wave for wave, one in zip(squad.waves, each, strict=True) if one is None)
        if open_:
            raise ForkError(base, open_)
        outcomes = [one == positive for one in each]
        return outcomes[0] if len(set(outcomes)) == 1 else outcomes

    def _of_wave(self, base: Symbol, wave: int, known: Decisions) -> bool | None:
        """What a condition that waves don't share is in one of them."""
        decided = known.decided(base, wave)
        if decided is not None:
            return decided
        told = self._one_wave.symbol(base, wave)
        if isinstance(told, int):
            return bool(told)
        if not isinstance(told, Linear) or told.base.spread != GROUP or told.base.bits != 1:
            return None
        decided = known.decided(told.base)
        if decided is None:
            raise ForkError(told.base, parts=True)
        return decided == (told.scale == 1)
