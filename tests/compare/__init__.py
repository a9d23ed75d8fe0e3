"""Tests of `fixtures/compare`."""
