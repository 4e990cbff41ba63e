"""The Python in the documents runs and prints what they say."""

import doctest
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("name", ["docs/architecture.md"])
def test_examples_run(name: str) -> None:
    blocks = BLOCK.findall((ROOT / name).read_text())
    assert blocks, f"{name} has no example"
    for block in blocks:
        example = doctest.DocTestParser().get_doctest(block, {}, name, name, 0)
        assert doctest.DocTestRunner().run(example).failed == 0
