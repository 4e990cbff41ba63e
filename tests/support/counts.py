"""How many examples the tests of the engine's invariants look at."""

import os

LONG = os.environ.get("CHUNKSCOPE_TEST_LONG") == "1"
ENGINE_EXAMPLES = 10_000 if LONG else 100
