"""Tests of `fixtures/commands/compare`."""
