"""How many examples the tests of the engine's invariants, and of saturation points, look at."""

import os

LONG = os.environ.get("CHUNKSCOPE_TEST_LONG") == "1"
ENGINE_EXAMPLES = 10_000 if LONG else 100
SATURATION_SEEDS = 100 if LONG else 10
