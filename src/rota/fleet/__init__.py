"""Verdicts about many kernels: computed by all cores, kept by their content, compared and reported."""
