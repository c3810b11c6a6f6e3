"""rota inside other tools: test runners and notebooks."""
