"""Decisions that break no rule when they are wrong: a recorded run of SGLang's scheduler notices them."""

import pytest

from engine import admission, decode_memory, retraction, scheduler
from engine.admission import PrefillAdder
from engine.cache.kv_cache import KVCache
from engine.new_token_ratio import NewTokenRatio
from engine.prefill_interval import PrefillInterval
from engine.queue_order import QueueOrder
from engine.reserve import Reserve
from engine.scheduler import Scheduler
from tests.corpus.test_sglang_golden import DIRECTORY, FILES
from tests.support.golden import Replay, differences
from tests.support.mutations import Mutation

USERS = (admission, decode_memory, retraction, scheduler)

# The recorded run, and what is broken.
MUTATIONS = (
    ("f00-interval1-page1", Mutation("an interval ignored", PrefillInterval, "defers",
        "self._remaining == 0", "True")),
    ("d00-tiny-page1", Mutation("victims with the most output first", decode_memory, "choose_kept",
        "-r.output_len", "r.output_len")),
    ("d00-tiny-page1", Mutation("victims by shorter prompt", decode_memory, "choose_kept",
        "r.prompt_len)", "-r.prompt_len)")),
    ("d00-tiny-page1", Mutation("no room made at a retraction", decode_memory, "reset_for_retract",
        "cache.make_room(remaining * RETRACT_DECODE_STEPS)", "pass")),
    ("d00-tiny-page1", Mutation("a ratio that no retraction raises", Scheduler, "_retract",
        "self.ratio.on_retract(self.running)", "pass")),
    ("d00-tiny-page1", Mutation("nothing reserved for what runs", Reserve, "tokens",
        "self._whole_tokens + self._weighed_tokens * new_token_ratio", "0")),
    ("a04-fcfs-page16", Mutation("a ratio that never decays", NewTokenRatio, "decay",
        "self.current - self.step", "self.current")),
    ("b00-mixed-page1", Mutation("a chunk not lowered by the decode rows", PrefillAdder, "__init__",
        "None if chunk is None else chunk - mixed_decode_tokens", "chunk")),
    ("a02-fcfs-page4", Mutation("no KV left for others at an end", KVCache, "release",
        "if keep:", "if False:")),
    ("c06-radix-page16-lpm", Mutation("a queue in order of arrival", QueueOrder, "apply",
        'self._policy == "fcfs"', "True")),
    ("b04-mixed-page16", Mutation("a full batch that stays full", Scheduler, "_drop_finished",
        "self._batch_is_full = False", "pass")),
    ("a04-fcfs-page16", Mutation("decodes before prefill", Scheduler, "_plan_prefill",
        "if not adder.admitted:", "if not adder.admitted or self.running:")),
    ("i00-align64-page16", Mutation("cuts never aligned", PrefillAdder, "_cut",
        "length // align * align", "length")),
)  # fmt: skip


@pytest.mark.skipif(not FILES, reason=f"no recorded SGLang runs in {DIRECTORY} (set SGLANG_GOLDEN)")
@pytest.mark.parametrize(("run", "mutation"), MUTATIONS, ids=[m.what for _, m in MUTATIONS])
def test_a_recorded_run_notices(run: str, mutation: Mutation, monkeypatch: pytest.MonkeyPatch) -> None:
    mutation.apply(monkeypatch, *USERS)
    replay = Replay(DIRECTORY / f"{run}.json")
    assert any(differences(told, replay.step(at)) for at, told in enumerate(replay.run["rounds"]))
