"""Shipped schedules: takes a geometry and knobs, gives `PipelineSchedule`s that serve as products and as examples."""
