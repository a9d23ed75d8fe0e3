"""Tests of `fixtures/commands/bisect`."""
