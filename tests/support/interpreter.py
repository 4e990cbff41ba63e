"""Triton's interpreter, mended for tests: it rounds as a GPU does, and wastes less time."""

from functools import partial, partialmethod
from typing import Any

import numpy as np
import torch
import triton.language as tl
from triton.runtime import interpreter

__all__ = ["mend_interpreter"]


def mend_interpreter() -> None:
    """From now on, in this process.

    Float32 becomes bfloat16 by rounding to the nearest even, not by cutting off. And the language is prepared
    once for all functions that kernels call, not at each call, which takes a third of the time of a kernel.
    """
    interpreter._convert_float = partial(_rounding, interpreter._convert_float)
    interpreter.InterpretedFunction.__call__ = partialmethod(_call, set())


def _rounding(convert: Any, data: Any, source: tl.dtype, target: tl.dtype, mode: Any) -> Any:
    if source == tl.float32 and target == tl.bfloat16:
        rounded = torch.from_numpy(np.array(data, dtype=np.float32)).bfloat16()
        return rounded.view(torch.int16).numpy().view(np.uint16)
    return convert(data, source, target, mode)


def _call(function: Any, prepared: set[str], *args: Any, **options: Any) -> Any:
    """What a launch prepares for the kernel's module, Triton's own modules need too; there it stays."""
    module = function.fn.__module__
    if module.startswith("triton.") and module not in prepared:
        interpreter._patch_lang(function.fn)
        prepared.add(module)
    return function.rewrite()(*args, **options)
