"""The order of one iteration's ops."""
