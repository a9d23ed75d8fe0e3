"""Tests of `fixtures/bisect`."""
