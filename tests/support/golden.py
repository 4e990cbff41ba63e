"""Reads the recorded runs of SGLang's scheduler and replays them on our engine."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from engine.batch import ForwardBatch
from engine.clock import MonotonicClock
from engine.config import EngineConfig
from engine.engine import Engine
from engine.executors.protocol import FinishedForward, ForwardResult
from engine.request import Request, SamplingParams

TOKEN = 7


class ConstantExecutor:
    """Answers every row with the same token."""

    def launch(self, batch: ForwardBatch) -> FinishedForward:
        return FinishedForward(ForwardResult([TOKEN] * batch.num_rows, 0, 0))


def prompt(
    group: int, shared: int, seed: int, length: int, sevens: list[list[int]] | None = None
) -> list[int]:
    """Token ids by the formula of the corpus README."""
    ids = []
    for i in range(length):
        base = group if i < shared else 1000 + seed
        ids.append(8 + (base * 1000003 + i * 7919) % 32003)
    for a, b in sevens or []:
        ids[a:b] = [TOKEN] * (b - a)
    return ids


def config_of(options: dict[str, Any], context_length: int) -> EngineConfig:
    """The engine's config for a run's options."""
    config = EngineConfig(**options)
    return config.resolve(max_total_tokens=options["max_total_tokens"], context_length=context_length)


@dataclass
class Replay:
    """One recorded run beside our engine."""

    path: Path
    run: dict[str, Any] = field(init=False)
    engine: Engine = field(init=False)
    by_rid: dict[str, Request] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.run = json.loads(self.path.read_text())
        config = config_of(self.run["options"], context_length=1 << 20)
        self.engine = Engine(config, ConstantExecutor(), clock=MonotonicClock())

    def arrive(self, round_: int) -> None:
        for spec in self.run["requests"]:
            if spec["arrives_before_round"] != round_:
                continue
            request = Request(
                rid=len(self.by_rid),
                name=spec["rid"],
                prompt_token_ids=prompt(**spec["prompt_token_ids"]),
                sampling=SamplingParams(spec["max_new_tokens"], ignore_eos=spec["ignore_eos"]),
            )
            self.by_rid[spec["rid"]] = request
            self.engine.submit(request)
            assert request.max_new_tokens == spec["max_new_tokens"]

    def counters(self) -> dict[str, int]:
        return {
            r.name: r.inflight_middle_chunks
            for r in self.by_rid.values()
            if r.inflight_middle_chunks and not r.finished
        }

    def step(self, round_: int) -> dict[str, Any]:
        """Run one round; returns it in the recorded format."""
        self.arrive(round_)
        names = {r.rid: r.name for r in self.by_rid.values()}
        seen: dict[str, Any] = {}
        plan_round = self.engine.scheduler.plan

        def plan() -> Any:
            planned = plan_round()
            page = self.engine.config.page_size
            pool = self.engine.cache.pool_state()
            seen.update(
                planned=planned,
                counters_after_plan=self.counters(),
                chunked_rid=self.engine.scheduler.chunked_req and self.engine.scheduler.chunked_req.name,
                available=pool.free * page,
                evictable=pool.evictable * page,
                protected=pool.protected * page,
                new_token_ratio=self.engine.scheduler.ratio.current,
                retracted=[r.name for r in self.engine.scheduler.retraction.retracted],
            )
            assert pool.free + pool.evictable + pool.protected + pool.private == pool.total
            return planned

        self.engine.scheduler.plan = plan  # type: ignore[method-assign]
        before = {name: r.output_len for name, r in self.by_rid.items()}
        self.engine.step()
        self.engine.scheduler.plan = plan_round  # type: ignore[method-assign]
        rows: list[list[Any]] = []
        planned = seen.pop("planned")
        if planned is not None:
            b = planned.batch
            rows = [
                [names[int(rid)], int(p), int(e), bool(m)]
                for rid, p, e, m in zip(b.rids, b.prefix_lens, b.extend_lens, b.is_middle, strict=True)
            ]
        seen["mode"] = planned.batch.mode.name if planned else "IDLE"
        seen["rows"] = rows
        seen["counters_after_result"] = self.counters()
        emitted = {name: r.output_len - before[name] for name, r in self.by_rid.items()}
        seen["emitted"] = {name: count for name, count in emitted.items() if count}
        return seen


def differences(expected: dict[str, Any], seen: dict[str, Any]) -> list[str]:
    """Fields of a round that differ, in words."""
    out = []
    for key, want in expected.items():
        got = seen[key]
        if key == "new_token_ratio":
            if not np.isclose(got, want, rtol=0, atol=1e-9):
                out.append(f"{key}: {got} instead of {want}")
        elif got != want:
            out.append(f"{key}: {got} instead of {want}")
    return out
