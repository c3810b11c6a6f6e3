"""rota's plug-in for its own tests."""

pytest_plugins = ["rota.integrations.pytest_plugin"]
