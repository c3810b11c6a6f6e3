"""The module that the reference's pages name for its two helpers; they are in `rota.pipeline.phases`."""

from rota.pipeline.phases import derive_cross_stage_rotation_edges, filter_spurious_cross_stage_flow

__all__ = ["derive_cross_stage_rotation_edges", "filter_spurious_cross_stage_flow"]
