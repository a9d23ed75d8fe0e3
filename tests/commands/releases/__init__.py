"""Tests of `fixtures/commands/releases`."""
