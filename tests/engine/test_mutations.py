"""Each rule of the engine, broken by itself, is noticed by what watches random runs.

A mutation replaces one piece of a function's source. Where that piece is gone, the engine has changed: say
anew how the rule is broken.
"""

from pathlib import Path

import pytest

from engine import admission, batching, decode_memory, engine, results, retraction, scheduler
from engine.admission import PrefillAdder
from engine.cache import kv_cache
from engine.cache.kv_cache import KVCache
from engine.cache.radix import RadixTree
from engine.request import Request
from engine.retraction import Retraction
from engine.scheduler import Scheduler
from engine.waiting_queue import WaitingQueue
from profiler.invariants import Status, check_trace
from tests.support import recorded, watched_run
from tests.support.engines import Prompts, make_engine, rows
from tests.support.mutations import Mutation
from tests.support.recorded import record_run
from tests.support.seeded_workloads import seeded_workload
from tests.support.watched_run import check_output

USERS = (admission, engine, kv_cache, retraction, scheduler)  # modules that import what is broken
NOTICED = (AssertionError, IndexError, ValueError)
MOST_ROUNDS = 600  # of a broken engine that gets stuck

# The seed of a workload in whose watched run it is noticed, and what is broken.
WATCHED = (
    (0, Mutation("a counter that no result lowers", results, "process_results",
        "inflight_middle_chunks -= 1", "inflight_middle_chunks -= 0")),
    (0, Mutation("a flag instead of a counter", Scheduler, "_plan_prefill",
        "inflight_middle_chunks += 1", "inflight_middle_chunks = 1")),
    (1, Mutation("a middle chunk that emits", results, "_outcome",
        "Outcome.MIDDLE_DROPPED", "Outcome.EMITTED")),
    (9, Mutation("a late result of an older attempt applied", results, "_outcome",
        "request.attempt != attempt", "False")),
    (0, Mutation("a row past the end emitted", results, "_outcome",
        "request.finish_reason is not None", "False")),
    (0, Mutation("the KV of a finished request kept", results, "process_results",
        "cache.release(request, keep=True)", "pass")),
    (8, Mutation("a checkpoint of more than was computed", results, "process_results",
        "cache.checkpoint(request, request.extend_end)", "cache.checkpoint(request, len(request.tokens))")),
    (0, Mutation("a page handed out while it is owned", KVCache, "checkpoint",
        "row[first : known // self.page_size]", "row[first:last]")),
    (2, Mutation("duplicate pages never freed", KVCache, "checkpoint",
        "self._free(row[first : known // self.page_size])", "pass")),
    (0, Mutation("private pages counted wrong", KVCache, "checkpoint",
        "self.private_pages -= last - first", "self.private_pages -= last")),
    (2, Mutation("a row that is never free again", KVCache, "release",
        "self._free_rows.append(request.row)", "pass")),
    (2, Mutation("a whole prompt taken from the cache", KVCache, "match",
        "request.tokens[:-1]", "request.tokens")),
    (0, Mutation("a locked page evicted", RadixTree, "_is_free_leaf",
        "not node.children and node.lock_ref == 0", "not node.children")),
    (0, Mutation("a lock on one node only", RadixTree, "_path",
        "node = node.parent", "return")),
    (2, Mutation("a prefix in use left unlocked", PrefillAdder, "add",
        "self._cache.tree.lock(request.node)", "pass")),
    (4, Mutation("a refused candidate that stays locked", PrefillAdder, "add",
        "self._cache.tree.unlock(request.node)", "pass")),
    (1, Mutation("a split that forgets its locks", RadixTree, "_split",
        "upper.lock_ref = node.lock_ref", "pass")),
    (26, Mutation("a first chunk cut between pages", PrefillAdder, "_cut",
        "length = floor_page(self._chunk, self._page)", "return self._commit_cut(request, self._chunk)")),
    (462, Mutation("two half-done requests", PrefillAdder, "_commit_cut",
        "self.chunked_req is not None", "False")),
    (0, Mutation("a half-done request that decodes", Scheduler, "_merge_last",
        "and r is not self.chunked_req", "")),
    (0, Mutation("an ended request that decodes", Scheduler, "_drop_finished",
        "if not r.finished", "")),
    (1, Mutation("a chunk computed twice", Scheduler, "_stash_chunk",
        "request.prefix_len = request.extend_end", "pass")),
    (1, Mutation("an aborted request that keeps its KV", Scheduler, "remove",
        "self._cache.release(request, keep=False)", "pass")),
    (1, Mutation("an aborted request that stays in the queue", Scheduler, "remove",
        "self.waiting.remove(request)", "pass")),
    (2, Mutation("a retraction that keeps the KV", decode_memory, "reset_for_retract",
        "cache.release(request, keep=False)", "pass")),
    (2, Mutation("a retraction that starts no new attempt", decode_memory, "reset_for_retract",
        "request.attempt += 1", "pass")),
    (2, Mutation("a retracted request that is forgotten", Scheduler, "_requeue",
        "self.waiting.append(request)", "pass")),
    (2, Mutation("a preempted request that runs on", Retraction, "preempt",
        "kept.remove(victim)", "pass")),
    (2, Mutation("a victim that is not reset", Retraction, "preempt",
        "self._reset(victim, len(kept))", "pass")),
    (0, Mutation("a decode position from the tokens known", batching, "build_batch",
        "decode_ends = [r.kv_len for r in decode]", "decode_ends = [len(r.tokens) for r in decode]")),
    (0, Mutation("the wrong row awaited", batching, "_awaited_rows",
        "enumerate(last.requests)", "enumerate(last.requests[::-1])")),
    (0, Mutation("a page too few", KVCache, "_new_pages",
        "ceil_page(seq_len, self.page_size) -", "floor_page(seq_len, self.page_size) -")),
    (9, Mutation("a decode without room", decode_memory, "check_decode_mem",
        "cache.make_room(cache.decode_need_tokens(requests))", "True")),
    (0, Mutation("waiting tokens never taken off", WaitingQueue, "remove",
        "self.pending_tokens -= len(request.tokens)", "pass")),
)  # fmt: skip

# The rule of `chunkscope check` that names it, and the seed of a workload.
CHECKED = (
    ("inflight_counted", 0, WATCHED[0][1]),
    ("middle_never_emits", 1, WATCHED[2][1]),
    ("outcomes_explained", 9, WATCHED[3][1]),
    ("ends_at_once", 0, Mutation("a row beyond the length", Scheduler, "_drop_ending",
        "if not r.ends_with_next_token", "")),
    ("running_counted", 16, Mutation("an end that is foreseen too late", Request, "ends_with_next_token",
        "self.output_len + 1 >=", "self.output_len >=")),
)  # fmt: skip


@pytest.mark.parametrize(("seed", "mutation"), WATCHED, ids=[m.what for _, m in WATCHED])
def test_a_watched_run_notices(seed: int, mutation: Mutation, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watched_run, "MAX_ROUNDS", MOST_ROUNDS)
    mutation.apply(monkeypatch, *USERS)
    with pytest.raises(NOTICED):
        _watch(seed)


@pytest.mark.parametrize(("rule", "seed", "mutation"), CHECKED, ids=[m.what for *_, m in CHECKED])
def test_the_check_of_its_trace_names_the_rule(
    rule: str, seed: int, mutation: Mutation, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(recorded, "MAX_ROUNDS", MOST_ROUNDS)
    mutation.apply(monkeypatch, *USERS)
    trace, _ = record_run(tmp_path / "t.chunkscope", *seeded_workload(seed))
    assert rule in {result.name for result in check_trace(trace).having(Status.VIOLATED)}


def test_an_admission_that_leaves_nothing_to_spare_is_noticed_by_its_rows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of 100 tokens the first takes 10 + 1 + 5; the second needs all of the 84 that are left."""
    assert _first_rows() == [("r0", 0, 10)]
    spares_nothing = Mutation(
        "nothing to spare", PrefillAdder, "_place", "_page >= self.rem_total", "_page > self.rem_total"
    )
    spares_nothing.apply(monkeypatch)
    assert _first_rows() == [("r0", 0, 10), ("r1", 0, 40)]


@pytest.mark.parametrize("seed", sorted({seed for seed, _ in WATCHED} | {seed for _, seed, _ in CHECKED}))
def test_whole_nothing_is_noticed(seed: int) -> None:
    _watch(seed)


def _watch(seed: int) -> None:
    for request in watched_run.watched_run(*seeded_workload(seed)):
        check_output(request)


def _first_rows() -> list[tuple[str, int, int]]:
    prompts = Prompts()
    ours = make_engine(pool=100)
    ours.submit(prompts.request(10, 5))
    ours.submit(prompts.request(40, 43))
    return rows(ours.step())
