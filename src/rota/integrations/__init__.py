"""rota where people already are: test runners and notebooks."""
