"""A kernel whose main loop has a better order: found, written into the object, read again, compared and proved.

Nothing is handed over that isn't predicted to be faster, equal by `rota.improve.same_kernel`, and proved as the kernel
was: the same status, and no assumption that wasn't made before.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from operator import itemgetter
from typing import NamedTuple

from rota.cycles.predict import predict
from rota.errors import IsaError, ProgramError
from rota.improve.loop_block import LoopBlock, count_moved, make_nop, read_block, refuse
from rota.improve.order_search import LEAST_GAIN, Order, ScoredLoop, find_orders, find_weaker_waits, sketch
from rota.improve.patched_code import Arrangement, list_cuts, patch, rotate
from rota.improve.same_kernel import find_difference
from rota.isa.binary.code_object import CodeObject
from rota.isa.binary.kernel_facts import KernelFacts
from rota.isa.disassembly import Instruction
from rota.isa.launch.loaded_kernel import check_description, launch_described, load_kernel
from rota.isa.launch.orders import is_array, regions_of, span_of
from rota.lift.lifted_loop import LiftedLoop, lift_kernel
from rota.prove.kernel_proof import Triple, prove
from rota.prove.verdict import STEPS_PER_SECOND, Budget, Status, Verdict
from rota.targets.device import Device
from rota.targets.registry import architecture_named

_ENTRIES = 30_000  # that are predicted in all of one form, so that a search takes less than a minute
_FEWEST, _MOST = 40, 400  # orders
_MOST_FORMS = 2  # of the loop that are searched, after a few orders of each were predicted
_MOST_ORDERS = 4  # that are written and proved
_LEAST_STEPS = 2 * STEPS_PER_SECOND
_PROVED = frozenset({Status.PROVED, Status.ONE_SOURCE})


@dataclass(frozen=True, slots=True, kw_only=True)
class ImprovedKernel:
    """The object with the better loop, and what was found of both.

    `clocks` are predicted for one trip, `moved` are the fewest instructions that make the new order of the old one;
    `ahead` of them are executed one trip ahead of the rest.
    `weaker` are waits that leave more in flight, with their texts before and after.
    """

    name: str
    code: CodeObject
    before: float
    clocks: float
    place: str
    instructions: int
    moved: int
    ahead: int = 0
    weaker: tuple[tuple[str, str], ...]
    verdict: Verdict
    tried: int

    @property
    def gain(self) -> float:
        """The share of the predicted clocks that is saved."""
        return 1 - self.clocks / self.before


def improve_kernel(
    code: CodeObject, name: str, device: Device, *, block: int | Triple | None = None, dynamic_lds: int | None = None,
    most: int | None = None,
) -> ImprovedKernel:  # fmt: skip
    """A kernel with a better order of its main loop; raises I610 with the reason if none is found.

    `most` orders are predicted, by default fewer of larger loops.
    """
    return _Improvement(code, code.kernel(name), device, _Launch(block, dynamic_lds), most).run()


class _Launch(NamedTuple):
    """What is said of the launch, to the proof."""

    block: int | Triple | None
    dynamic_lds: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Form:
    """The kernel as it is, or with its loop cut so that `ahead` instructions are a trip ahead of the rest."""

    code: CodeObject
    instructions: Sequence[Instruction]
    lifted: LiftedLoop
    loop: LoopBlock
    scored: ScoredLoop
    ahead: int


_Found = tuple[ImprovedKernel, LiftedLoop]


class _Improvement:
    def __init__(self, code: CodeObject, facts: KernelFacts, device: Device, launch: _Launch, most: int | None) -> None:
        architecture = architecture_named(facts.arch)
        if architecture is None or architecture.wait_encoding is None:
            raise refuse(facts.name, f"the waits of {facts.arch} aren't written")
        self._code, self._facts, self._device, self._launch, self._most = code, facts, device, launch, most
        self._architecture = architecture
        self._instructions = code.instructions(facts.name)
        self._wrong: list[str] = []

    def run(self) -> ImprovedKernel:
        name = self._facts.name
        lifted = self._lift(self._code, self._instructions)
        if lifted.verdict.status not in _PROVED:
            raise refuse(name, f"as it is, its proof ends with: {lifted.verdict.status.value}")
        chain = [each.instruction for loop in lifted.loops for each in loop.chain]
        before = predict(lifted.program, band=False).cycles
        as_it_is = ImprovedKernel(
            name=name, code=self._code, before=before, clocks=before, place=chain[0].place, instructions=len(chain),
            moved=0, weaker=(), verdict=lifted.verdict, tried=0,
        )  # fmt: skip
        found = as_it_is, lifted
        try:
            found = next(self._reorder(self._read(self._code, lifted), as_it_is), found)
        except IsaError as error:  # it has no part that can be reordered
            self._wrong.append(str(dict(error.findings[0].evidence)["reason"]))
        better = self._weaken(*found)
        if better.code is self._code:
            raise refuse(name, self._wrong[0] if self._wrong else "none of those tried is predicted to be faster")
        return better

    def _reorder(self, form: _Form, as_it_is: ImprovedKernel) -> Iterator[_Found]:
        """Kernels with better orders, the best one first."""
        most = self._most or min(max(_ENTRIES // len(form.lifted.program.kernel), _FEWEST), _MOST)
        forms = [form, *self._rotate(form)]
        moved = next((each for each in forms[1:] if not each.ahead), None)  # the same loop where it has more room
        cut = sorted((each for each in forms if each is not moved), key=lambda each: sketch(each.scored, each.loop))
        orders = [
            (found.clocks, place, found.order, each) for place, each in enumerate(cut[:_MOST_FORMS])
            for found in find_orders(each.scored, each.loop, most)[:_MOST_ORDERS]
        ]  # fmt: skip
        as_it_is = replace(as_it_is, tried=sum(each.scored.tried for each in forms))
        better = (each for each in sorted(orders, key=itemgetter(0, 1, 2)) if each[0] < as_it_is.before - LEAST_GAIN)
        for _, _, order, each in islice(better, _MOST_ORDERS):
            written = self._write(order, each)
            if written is None and each is form and moved is not None:
                written = self._write(each.loop.renumber(order, moved.loop), moved)
            if written is not None:
                was = replace(as_it_is, moved=count_moved(order), ahead=each.ahead)
                if (made := self._hand_over(was, written)) is not None:
                    yield made

    def _read(self, code: CodeObject, lifted: LiftedLoop | None = None, ahead: int = 0) -> _Form:
        instructions = code.instructions(self._facts.name)
        lifted = lifted or self._lift(code, instructions)
        if len(lifted.loops) > 1:
            raise refuse(self._facts.name, "its waves run several loops")
        loop = read_block(self._facts.name, instructions, lifted.loops[0].chain, self._architecture)
        scored = ScoredLoop(lifted, loop)
        return _Form(code=code, instructions=instructions, lifted=lifted, loop=loop, scored=scored, ahead=ahead)

    def _rotate(self, form: _Form) -> Iterator[_Form]:
        """The loop with a part of it a trip ahead, as far as that is proved as it was."""
        for cut in list_cuts(form.instructions, form.loop):
            try:
                code = rotate(form.code, form.instructions, form.loop, cut)
                made = None if code is None else self._read(code, ahead=len(cut.head))
            except IsaError:  # it can't be lifted any more
                continue
            if made is not None and is_as_good(made.lifted.verdict, form.lifted.verdict):
                yield made

    def _lift(self, code: CodeObject, instructions: Sequence[Instruction]) -> LiftedLoop:
        try:
            return lift_kernel(
                code.kernel(self._facts.name), instructions, self._device, block=self._launch.block,
                dynamic_lds=self._launch.dynamic_lds,
            )  # fmt: skip
        except ProgramError as error:
            raise refuse(self._facts.name, error.findings[0].message.partition(": ")[2]) from error

    def _write(self, order: Order, form: _Form) -> CodeObject | None:
        """The object with the loop in another order; None if that doesn't fit."""
        try:
            words = Arrangement(form.instructions, form.loop, order).encode()
        except IsaError as error:
            self._wrong.append(str(dict(error.findings[0].evidence)["reason"]))
            return None
        return patch(form.code, {form.instructions[form.loop.first].address or 0: words})

    def _weaken(self, was: ImprovedKernel, lifted: LiftedLoop) -> ImprovedKernel:
        """The kernel with waits that leave more in flight, if the model doesn't predict more clocks with them."""
        made = was.code.instructions(was.name)
        budget = Budget(steps=max(4 * was.verdict.statistics.effort, _LEAST_STEPS))

        def is_proved(instructions: Sequence[Instruction]) -> bool:
            found = prove(self._facts, instructions, **self._launch._asdict(), budget=budget, stops=True)
            return is_as_good(found, was.verdict)

        numbers = sorted({each.number for loop in lifted.loops for each in loop.chain})
        weaker = find_weaker_waits(self._facts, made, numbers, self._architecture, is_proved)
        if not weaker:
            return was
        words = {
            made[number].address or 0: (each or make_nop(made[number], 0)).encoding for number, each in weaker.items()
        }
        texts = [(made[number].text, "nothing" if each is None else each.text) for number, each in weaker.items()]
        weakened = self._hand_over(replace(was, weaker=tuple(texts)), patch(was.code, words))
        return was if weakened is None else weakened[0]

    def _hand_over(self, was: ImprovedKernel, code: CodeObject) -> _Found | None:
        """The kernel in this object, unless something says that it isn't better, equal or proved."""
        made = code.instructions(was.name)
        difference = find_difference(self._instructions, made)
        if difference is not None:
            self._wrong.append(str(difference))
            return None
        lifted = self._lift(code, made)
        if not is_as_good(lifted.verdict, was.verdict):
            self._wrong.append(f"the new order isn't proved: {lifted.verdict.status.value}")
            return None
        clocks = predict(lifted.program, band=False).cycles
        is_better = clocks < was.clocks - LEAST_GAIN or (was.weaker and clocks <= was.clocks)
        return (replace(was, code=code, clocks=clocks, verdict=lifted.verdict), lifted) if is_better else None


def is_as_good(now: Verdict, was: Verdict) -> bool:
    """True if a proof ends as the other one did, without another finding or assumption."""
    codes = [each.code for each in was.findings]
    return (
        now.status is was.status
        and set(now.assumptions) <= set(was.assumptions)
        and all(each.code in codes for each in now.findings)
        and len(now.findings) <= len(codes)
    )


def compare_runs(old: CodeObject, new: CodeObject, name: str, describe: object) -> None:
    """Execute both with the launch that a function describes; raises I610 unless they leave the same bits."""
    if not callable(describe):
        raise IsaError.of("I107", "the launch is not a function")
    left = []
    for code in (old, new):
        launch = check_description(describe())
        ended = launch_described(load_kernel(code.hsaco, name), launch, orders=1)
        spans = (span_of(each, str(number)) for number, each in enumerate(launch["args"]) if is_array(each))
        arrays = [region.octets.tobytes() for span in spans for region in regions_of([span])]
        left.append((arrays, [each.code for each in ended.findings]))
    if left[0] != left[1]:
        raise refuse(name, "executed, both leave other bits or other findings")
