"""Pictures of a schedule: text, SVG, HTML, a Perfetto trace, a diff."""
