"""Bytes that an element of a model takes, by what it is and by the type that weights are run in."""

from dataclasses import dataclass

from engine.errors import ModelError

__all__ = ["ACTIVATION_BYTES", "DTYPES", "KV_DTYPES", "ElementBytes", "element_bytes"]

DTYPES = ("auto", "bf16", "fp8")
KV_DTYPES = ("bf16", "fp8")
ACTIVATION_BYTES = 2
MXFP4_BYTES = 17 / 32  # four bits, and a scale of eight bits for 32 elements
WIDTHS = {"bf16": 2, "fp8": 1}


@dataclass(frozen=True, slots=True)
class ElementBytes:
    """Bytes of an element of the layers' matrices, of routed experts', and of keys and values.

    All else is 16 bits wide: embedding, head, norms, biases, routers, and activations.
    """

    matrices: int = 2
    experts: float = 2
    kv: int = 2

    @property
    def dtype(self) -> str:
        """The type that the layers' matrices are multiplied in; experts in MXFP4 are, too."""
        return "fp8" if self.matrices == 1 else "bf16"


def element_bytes(dtype: str, kv_dtype: str, quant_method: str | None, name: str) -> ElementBytes:
    """Sizes for one of DTYPES and one of KV_DTYPES.

    "auto" is what the checkpoint holds, which `quant_method` of its configuration says: "fp8", "mxfp4"
    (experts alone), or None for 16 bits. Raises ModelError for another.
    """
    kv = WIDTHS[kv_dtype]
    if dtype != "auto":
        return ElementBytes(WIDTHS[dtype], WIDTHS[dtype], kv)
    if quant_method is None:
        return ElementBytes(kv=kv)
    if quant_method == "fp8":
        return ElementBytes(1, 1, kv)
    if quant_method == "mxfp4":
        return ElementBytes(2, MXFP4_BYTES, kv)
    raise ModelError(f"{name}: quant_method {quant_method!r} is not known: give --dtype bf16 or fp8")
