"""Calls the command line: in this process, or as one of its own that can be killed."""

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from ui.cli import main

ROOT = Path(__file__).resolve().parent.parent.parent

TINY_CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_act": "silu",
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 500,
    "max_position_embeddings": 4096,
    "rms_norm_eps": 1e-5,
    "rope_theta": 10000.0,
    "tie_word_embeddings": True,
}


class Call(NamedTuple):
    """How a command ended and what it wrote."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def call(capfd: pytest.CaptureFixture[str], *args: object) -> Call:
    """Run a command in this process."""
    capfd.readouterr()
    with pytest.raises(SystemExit) as exit_:
        main([str(arg) for arg in args])
    out, err = capfd.readouterr()
    assert isinstance(exit_.value.code, int)
    return Call(exit_.value.code, out, err)


def refused(capfd: pytest.CaptureFixture[str], *args: object) -> str:
    """Run a command that must be refused as bad input; returns its one line."""
    code, out, err = call(capfd, *args)
    assert (code, out) == (2, "")
    assert err.startswith("chunkscope: ")
    assert err.count("\n") == 1
    return err


def start(*args: object) -> "subprocess.Popen[str]":
    """Start a command as a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "ui", *map(str, args)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_for_rows(trace: Path, process: "subprocess.Popen[str]", timeout_s: float = 60) -> None:
    """Return once the running command has written something of each table: requests come last."""
    deadline = time.monotonic() + timeout_s
    while not any(file.stat().st_size > 0 for file in trace.glob("rank-0/requests.arrow")):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline, "no forward was recorded in time"
        time.sleep(0.05)


def write_model(folder: Path, **changes: Any) -> Path:
    """A configuration without weights."""
    path = folder / "config.json"
    path.write_text(json.dumps({**TINY_CONFIG, **changes}))
    return path


def write_workload(path: Path, *lines: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path
