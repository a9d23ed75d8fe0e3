"""What all tests of the bench share."""

from hypothesis import settings

# The same examples on every machine, and no limit of time: a loaded runner is slow, not wrong.
settings.register_profile("bench", deadline=None, derandomize=True, database=None)
settings.load_profile("bench")
