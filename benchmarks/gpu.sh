#!/usr/bin/env bash
# Checks and measures everything that wants a GPU, in under 10 minutes: see benchmarks/gpu/METHOD.md.
#
#     benchmarks/gpu.sh [--device cpu] [--quick] [--only PHASE,...] [--seconds N]
#
# Needs python3 (or $PYTHON) with torch, triton, numpy, pyarrow and pytest, and no installation. Results go to
# $OUT: gpu.json, gpu.md, and correctness.txt.
set -euo pipefail
cd "$(dirname "$0")/.."
export PYTHONPATH="${PYTHONPATH:+$PYTHONPATH:}." PYTHONUNBUFFERED=1
exec "${PYTHON:-python3}" ${PYTHON_OPTIONS:-} -m benchmarks.gpu --out "${OUT:-build/gpu}" "$@"
