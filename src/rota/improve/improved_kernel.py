"""A kernel whose main loop has a better order: found, written into the object, read again, compared and proved.

Nothing is handed over that isn't predicted to be faster, equal by `rota.improve.same_values`, and proved as the kernel
was: the same status, and no assumption that wasn't made before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import NamedTuple

from rota.cycles.predict import predict
from rota.errors import IsaError, ProgramError
from rota.improve.loop_block import LoopBlock, count_moved, make_nop, read_block, refuse
from rota.improve.order_search import LEAST_GAIN, FoundOrder, ScoredLoop, find_orders
from rota.improve.patched_code import Arrangement, patch
from rota.improve.same_values import find_difference
from rota.improve.weaker_waits import find_weaker_waits
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

_ENTRIES = 60_000  # that are predicted in all, so that a search takes less than a minute
_FEWEST, _MOST = 60, 600  # orders
_MOST_ORDERS = 4  # that are written and proved
_LEAST_STEPS = 2 * STEPS_PER_SECOND
_PROVED = frozenset({Status.PROVED, Status.ONE_SOURCE})


@dataclass(frozen=True, slots=True, kw_only=True)
class ImprovedKernel:
    """The object with the better loop, and what was found of both.

    `clocks` are predicted for one trip, `moved` are the fewest instructions that make the new order of the old one.
    `weaker` are waits that leave more in flight, with their texts before and after.
    """

    name: str
    code: CodeObject
    before: float
    clocks: float
    place: str
    instructions: int
    moved: int
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
        if len(lifted.loops) > 1:
            raise refuse(name, "its waves run several loops")
        loop = read_block(name, self._instructions, lifted.loops[0].chain, self._architecture)
        scored = ScoredLoop(lifted, loop)
        before = scored.before
        as_it_is = ImprovedKernel(
            name=name, code=self._code, before=before, clocks=before, place=self._instructions[loop.first].place,
            instructions=len(loop.items), moved=0, weaker=(), verdict=lifted.verdict, tried=0,
        )  # fmt: skip
        most = self._most or min(max(_ENTRIES // len(lifted.program.kernel), _FEWEST), _MOST)
        orders = [each for each in find_orders(scored, loop, most) if each.clocks < before - LEAST_GAIN]
        written = ((each, words) for each in orders if (words := self._write(each, loop)) is not None)
        tries = (
            self._hand_over(replace(as_it_is, moved=count_moved(each.order)), loop, words)
            for each, words in islice(written, _MOST_ORDERS)
        )
        better = next((each for each in tries if each is not None), as_it_is)
        found = self._weaken(replace(better, tried=scored.tried), loop)
        if found.code is self._code:
            raise refuse(name, self._wrong[0] if self._wrong else "none of those tried is predicted to be faster")
        return found

    def _lift(self, code: CodeObject, instructions: Sequence[Instruction]) -> LiftedLoop:
        try:
            return lift_kernel(
                code.kernel(self._facts.name), instructions, self._device, block=self._launch.block,
                dynamic_lds=self._launch.dynamic_lds,
            )  # fmt: skip
        except ProgramError as error:
            raise refuse(self._facts.name, error.findings[0].message.partition(": ")[2]) from error

    def _write(self, found: FoundOrder, loop: LoopBlock) -> tuple[int, ...] | None:
        """The words of the loop in another order; None if they don't fit."""
        try:
            return Arrangement(self._instructions, loop, found.order).encode()
        except IsaError as error:
            self._wrong.append(str(dict(error.findings[0].evidence)["reason"]))
            return None

    def _weaken(self, was: ImprovedKernel, loop: LoopBlock) -> ImprovedKernel:
        """The kernel with waits that leave more in flight, if the model doesn't predict more clocks with them."""
        made = was.code.instructions(was.name)
        budget = Budget(steps=max(4 * was.verdict.statistics.effort, _LEAST_STEPS))

        def is_proved(instructions: Sequence[Instruction]) -> bool:
            found = prove(self._facts, instructions, **self._launch._asdict(), budget=budget, stops=True)
            return is_as_good(found, was.verdict)

        first, last = (self._instructions[each].address for each in (loop.first, loop.last))
        numbers = [place for place, each in enumerate(made) if (first or 0) <= (each.address or 0) < (last or 0)]
        inside = range(numbers[0], numbers[-1] + 1)
        weaker = find_weaker_waits(self._facts, made, inside, self._architecture, is_proved)
        if not weaker:
            return was
        words = [
            word for number in inside
            for word in (made[number] if number not in weaker else weaker[number] or make_nop(made[number], 0)).encoding
        ]  # fmt: skip
        texts = [(made[number].text, "nothing" if each is None else each.text) for number, each in weaker.items()]
        return self._hand_over(replace(was, weaker=tuple(texts)), loop, words) or was

    def _hand_over(self, was: ImprovedKernel, loop: LoopBlock, words: Sequence[int]) -> ImprovedKernel | None:
        """The kernel with these words, unless something says that it isn't better, equal or proved."""
        code = patch(was.code, self._instructions[loop.first].address or 0, words)
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
        return replace(was, code=code, clocks=clocks, verdict=lifted.verdict) if is_better else None


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
