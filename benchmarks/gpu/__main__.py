"""The command behind benchmarks/gpu.sh."""

import argparse
import os
import sys
import time
from pathlib import Path

from benchmarks.gpu.setting import SHARES, full, quick


def main() -> int:
    """0 if every phase ended and every kernel was right, 2 for options that make no sense."""
    options = _options()
    setting = (quick if options.quick else full)(options.device, options.seconds)
    if not setting.on_gpu:
        os.environ["TRITON_INTERPRET"] = "1"  # read when Triton is loaded, and torch may load it
    from benchmarks.gpu.run import run

    start_s = time.monotonic()
    sound = run(setting, options.only, options.out)
    print(f"{time.monotonic() - start_s:.0f} s", file=sys.stderr)
    return int(not sound)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="benchmarks/gpu.sh", description="see benchmarks/gpu/METHOD.md")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--quick", action="store_true", help="tiny sizes, only to see that all of it runs")
    parser.add_argument("--seconds", type=float, default=540.0, help="for everything together")
    parser.add_argument("--only", type=_names, default=tuple(SHARES), help=f"of {', '.join(SHARES)}")
    parser.add_argument("--out", type=Path, default=Path("build/gpu"))
    options = parser.parse_args()
    if options.device == "cpu" and not options.quick:
        parser.error("--device cpu only shows that everything runs: add --quick")
    return options


def _names(text: str) -> tuple[str, ...]:
    names = tuple(text.split(","))
    unknown = [name for name in names if name not in SHARES]
    if unknown:
        raise argparse.ArgumentTypeError(f"no phase {unknown[0]!r}: give some of {', '.join(SHARES)}")
    return names


if __name__ == "__main__":
    sys.exit(main())
