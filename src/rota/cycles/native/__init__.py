"""The compiled core of `rota.cycles.pace`."""
