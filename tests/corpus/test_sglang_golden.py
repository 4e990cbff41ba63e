"""Replays runs of SGLang's real scheduler and compares every field of every round."""

import os
from pathlib import Path

import pytest

from tests.support.golden import Replay, differences, prompt

REPOSITORY = Path(__file__).resolve().parents[2]
DIRECTORY = Path(os.environ.get("SGLANG_GOLDEN", REPOSITORY.parent / "shared/corpus/sglang-golden"))
FILES = sorted(DIRECTORY.glob("*.json"))


def test_prompt_formula() -> None:
    assert prompt(1, 5, 3, 8) == [7918, 15837, 23756, 31675, 7591, 4586, 12505, 20424]
    assert prompt(2, 3, 4, 7, [[5, 7]]) == [15828, 23747, 31666, 28661, 4577, 7, 7]


@pytest.mark.skipif(not FILES, reason=f"no recorded SGLang runs in {DIRECTORY} (set SGLANG_GOLDEN)")
@pytest.mark.parametrize("path", [pytest.param(path, id=path.stem) for path in FILES])
def test_every_round_is_sglangs(path: Path) -> None:
    replay = Replay(path)
    finished = {}
    for round_, expected in enumerate(replay.run["rounds"]):
        seen = replay.step(round_)
        found = differences(expected, seen)
        assert not found, f"{path.name} round {round_}: " + "; ".join(found)
        for name, request in replay.by_rid.items():
            if request.finished and name not in finished:
                finished[name] = [round_, request.output_len]
    assert finished == replay.run["finished"]
