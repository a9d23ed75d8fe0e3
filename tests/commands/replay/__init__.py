"""Tests of `fixtures/commands/replay`."""
