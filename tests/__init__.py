"""The tests of rota, one folder per folder of the package; folders below this one need no __init__.py."""
