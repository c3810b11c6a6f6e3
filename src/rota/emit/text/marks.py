"""Where a schedule stands in the machine code of a whole kernel: the values that m0 is set to at its two ends.

A DMA sets m0 anew before it uses it, so that these have no effect.
"""

from __future__ import annotations

FIRST_MARK = 0x524F5401
LAST_MARK = 0x524F5402
