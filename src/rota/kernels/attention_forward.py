"""Attention forward to be shipped: takes nothing, gives a shape for each head size.

`rota.emit.attention.attention_shape` says how it is computed.
"""

from __future__ import annotations

from rota.emit.attention.attention_shape import ForwardShape

HEAD_128 = ForwardShape(name="attention_forward_bf16_head128")
"""Attention forward for MI355X: four waves of 32 rows, 64 keys a tile, head size 128."""

HEAD_64 = ForwardShape(name="attention_forward_bf16_head64", head=64)
"""The same with head size 64."""

SMALL_TILE = ForwardShape(name="attention_forward_bf16_head64_small", rows=16, keys=32, head=64)
"""Less of everything, quickly scheduled."""
