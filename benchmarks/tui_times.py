"""Times of the terminal UI on one trace, in a process of its own: what `benchmarks/ui.py` starts."""

import asyncio
import json
import sys
import time
from pathlib import Path
from random import Random
from typing import Any

SIZE = (120, 40)
ROUNDS = 60  # pans, zooms and frames of playing
ZOOMS_IN = 12  # before it fits the whole trace again


def main() -> None:
    """TRACE and the time at which the process was started; prints one JSON object."""
    trace, started_s = Path(sys.argv[1]), float(sys.argv[2])
    sys.path[0] = str(Path(__file__).resolve().parents[1])
    print(json.dumps(asyncio.run(measure(trace, started_s))))


async def measure(trace: Path, started_s: float) -> dict[str, Any]:
    from profiler.timeline.timeline import open_timeline
    from ui.tui.app import make_app

    clock = [0.0]
    app = make_app(open_timeline(trace), clock=lambda: clock[0])
    async with app.run_test(size=SIZE) as pilot:
        await pilot.pause()
        screen: Any = app.screen
        render(screen)
        open_s = time.time() - started_s
        random, frames_ms = Random(0), {}
        for round_ in range(ROUNDS):
            for action in actions(round_, random):
                frames_ms.setdefault(action.partition("(")[0], []).append(await timed(app, screen, action))
            clock[0] += 0.05
            begin = time.perf_counter()
            screen.tick()
            render(screen)
            frames_ms.setdefault("play", []).append((time.perf_counter() - begin) * 1e3)
    return {"open_s": open_s, "frames_ms": frames_ms}


def actions(round_: int, random: Random) -> list[str]:
    """Of one round: start to play, zoom in step by step, and move to somewhere else now and then."""
    if round_ % ZOOMS_IN == 0:
        jump = random.choice((-1, 1))
        return ["move('fit_trace')", f"move('jump_to_stall', {jump})", "play"]
    return ["zoom(-1)", f"pan({random.choice((-1, 1))})"]


async def timed(app: Any, screen: Any, action: str) -> float:
    """Milliseconds from the action to the whole screen as terminal output."""
    begin = time.perf_counter()
    await app.run_action(action, screen)
    render(screen)
    return (time.perf_counter() - begin) * 1e3


def render(screen: Any) -> int:
    """All cells as escape sequences: a headless app would draw nothing."""
    update = screen._compositor.render_full_update()
    return len(update.render_segments(screen.app.console))


if __name__ == "__main__":
    main()
