"""What made an entry: the op of the body, the hook, the knob, the derivation rule, the repair."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import PurePath

from rota.errors import SourceLine

_MOST_NAMED = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Why an entry is there.  Deleting what it names, all of it together, removes or changes the entry.

    `rule` says in words what put it there.  `ops` are numbers of ops of the body, `knobs` fields of the schedule's or
    the pipeline's config, `hook` a method of the schedule, `repair` whether a repair added or changed it, and `source`
    the author's line.
    """

    rule: str
    ops: tuple[int, ...] = ()
    knobs: tuple[str, ...] = ()
    hook: str = ""
    repair: bool = False
    source: SourceLine | None = None

    def because(self, rule: str) -> Origin:
        """The same cause, under another rule."""
        return replace(self, rule=rule)

    @property
    def cause(self) -> str:
        """The rule and what it names, without the author's line."""
        first = ", ".join(f"#{number}" for number in self.ops[:_MOST_NAMED])
        more = f" and {len(self.ops) - _MOST_NAMED} more" if len(self.ops) > _MOST_NAMED else ""
        named = [f"op{'s' if self.ops[1:] else ''} {first}{more}"] if self.ops else []
        named += [f"{self.hook}()"] if self.hook else []
        named += self.knobs
        names = f" [{'; '.join(named)}]" if named else ""
        return f"{'repair: ' if self.repair else ''}{self.rule}{names}"

    def __str__(self) -> str:
        line = f" ({PurePath(self.source.file).name}:{self.source.line})" if self.source else ""
        return f"{self.cause}{line}"
