"""The paged keys and values of every layer."""

import torch

from engine.shapes import ModelShape

__all__ = ["KVTensors"]


class KVTensors:
    """One pool a layer; a token's key and value lie side by side, so that one copy of its page brings both.

    Slot `s` holds one token and belongs to page `s // page_size`. Page 0 is padding: never written and always
    zero, so that reading it is harmless wherever its scores are masked.
    """

    def __init__(
        self, shape: ModelShape, num_pages: int, page_size: int, dtype: torch.dtype, device: torch.device
    ) -> None:
        """Room for `num_pages` pages besides the padding page, all of it taken now, not during forwards."""
        self.page_size = page_size
        self.num_kv_heads = shape.num_kv_heads
        self.head_dim = shape.head_dim
        self._token_size = 2 * shape.kv_size
        # Zeros, not whatever memory holds: masked scores are finite only if the keys and values are.
        self._pages = torch.zeros(
            (shape.num_layers, num_pages + 1, page_size * self._token_size), dtype=dtype, device=device
        )
        self._slots = self._pages.view(shape.num_layers, -1, self._token_size)

    @property
    def device(self) -> torch.device:
        """Where the pool lies."""
        return self._pages.device

    @property
    def dtype(self) -> torch.dtype:
        """Element type of keys and values."""
        return self._pages.dtype

    @property
    def nbytes(self) -> int:
        """Size of the pool of all layers, padding included."""
        return self._pages.nbytes

    @property
    def token_bytes(self) -> int:
        """Bytes of one token's key and value in one layer."""
        return self._token_size * self._pages.element_size()

    def pool(self, layer: int) -> torch.Tensor:
        """One layer's pool itself, (slots, 2 * kv_size), for kernels that find slots by their numbers."""
        return self._slots[layer]

    def write(self, layer: int, slots: torch.Tensor, keys_values: torch.Tensor) -> None:
        """Store (tokens, 2 * kv_size) keys and values, key before value, in (tokens,) `slots`."""
        self._slots[layer].index_copy_(0, slots, keys_values)

    def workspace(self, num_pages: int) -> torch.Tensor:
        """An uninitialised buffer into which `gather` can copy up to `num_pages` pages."""
        return self._pages.new_empty((num_pages, self._pages.shape[2]))

    def gather(self, layer: int, pages: torch.Tensor, workspace: torch.Tensor) -> torch.Tensor:
        """Copy (n,) `pages` into `workspace`: (n * page_size, 2, kv heads, head_dim), key before value."""
        out = workspace[: len(pages)]
        torch.index_select(self._pages[layer], 0, pages, out=out)
        return out.view(-1, 2, self.num_kv_heads, self.head_dim)
