"""The pace of a wave, compiled: see `rota.cycles.native.pace`."""
