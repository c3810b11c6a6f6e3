"""The pace of a wave, compiled: see `rota.cycles.pace`."""
