"""Joins the steps: takes a `PipelineSchedule`, gives a `CompiledSchedule`; the only place that calls every step."""
