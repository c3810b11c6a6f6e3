"""Who looks on while a kernel is followed: takes what squads come to, gives nothing back to the proof."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Protocol

from rota.prove.product_state import ProductState
from rota.prove.squad import LdsUse, Squad


class Recorder(Protocol):
    """What is told about a proof under way; it changes nothing."""

    def came(self, product: ProductState, head: tuple[Hashable, ...], key: Hashable) -> None:
        """A checkpoint, with the name of its state: at a loop's head `head` is the first wave of who came there."""
        ...

    def accessed(self, product: ProductState, squad: Squad, access: LdsUse) -> None:
        """A squad issues an access of LDS."""
        ...
