"""The module that the reference's pages name for groups of knobs; they are in `rota.pipeline.schedule_config`."""

from rota.pipeline.schedule_config import BarrierStrategy, LoadStrategy, WaitStrategy

__all__ = ["BarrierStrategy", "LoadStrategy", "WaitStrategy"]
