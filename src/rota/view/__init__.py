"""Pictures: takes a compiled schedule and its predicted timeline, gives text, SVG, HTML, a Perfetto trace or a diff."""
