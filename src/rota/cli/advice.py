"""What could be different about a kernel's waits: takes a code object and a verdict, gives words and data about it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from rota.cli.machine_code import Block
from rota.cli.progress import progress

if TYPE_CHECKING:
    from rota.isa.binary.code_object import CodeObject
    from rota.prove.kernel_proof import Policies
    from rota.prove.needed import Needed
    from rota.prove.suggested import Suggestion
    from rota.prove.verdict import Verdict


class Asked(NamedTuple):
    """Which advice is wanted: what is needed of a proved kernel, what would mend one with an alarm."""

    needed: bool = False
    suggest: bool = False


NO_ADVICE = Asked()


class Advice(NamedTuple):
    """What was found, and in words."""

    needed: Needed | None
    suggestion: Suggestion | None
    text: str


def advise(code: CodeObject, verdict: Verdict, asked: Asked, block: Block | None, policies: Policies) -> Advice:
    """What was asked for and applies."""
    from rota.prove.needed import find_needed
    from rota.prove.suggested import suggest

    facts, instructions = code.kernel(verdict.kernel), code.instructions(verdict.kernel)
    needed, suggestion, text = None, None, []
    if asked.needed:
        with progress(f"what {facts.name} needs") as counted:
            needed = find_needed(facts, instructions, verdict, block=block, policies=policies, progress=counted.proofs)
        text.append(
            "which waits are needed is asked of a proved kernel" if needed is None else needed.told(instructions)
        )
    if asked.suggest:
        with progress(f"mending {facts.name}") as counted:
            suggestion = suggest(facts, instructions, verdict, block=block, policies=policies, progress=counted.proofs)
        text += ["nothing to mend" if suggestion is None else suggestion.told(instructions)]
    return Advice(needed, suggestion, "\n".join(text))
