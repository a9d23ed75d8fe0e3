"""Names the one plugin, which has every hook of the suite."""

pytest_plugins = ("fixtures.suite.plugin",)
