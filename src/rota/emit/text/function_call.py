"""A call of an author's function: takes its name and the numbers it is specialised for, gives C++ text."""

from __future__ import annotations

from typing import NamedTuple


class FunctionCall(NamedTuple):
    """A function, the numbers it is specialised for, what they are called, and which K-tile it is told."""

    name: str
    numbers: tuple[int, ...]
    called: tuple[str, ...]
    k_tile: int

    @property
    def declaration(self) -> str:
        """How the author declares it."""
        template = f"template <{', '.join(f'int {each}' for each in self.called)}> " if self.called else ""
        return f"{template}void {self.name}(int k);"

    def text(self, base: str) -> str:
        """The call, where K-tiles count from `base`."""
        numbers = f"template {self.name}<{', '.join(map(str, self.numbers))}>" if self.numbers else self.name
        if not base:
            return f"ops.{numbers}({self.k_tile});"
        sign = "-" if self.k_tile < 0 else "+"
        return f"ops.{numbers}({f'{base} {sign} {abs(self.k_tile)}' if self.k_tile else base});"
