"""rota's plug-in for its own tests, and the one that compares wording."""

pytest_plugins = ["rota.integrations.pytest_plugin", "tests.wording.plugin"]
