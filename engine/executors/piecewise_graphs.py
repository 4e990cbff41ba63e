"""Forwards with prompts as captured pieces, replayed between attentions that are launched one by one.

What attention launches depends on how a batch's tokens fall into rows; all else depends on their number
alone. So a layer from after its attention up to the next one's is a graph, for a few numbers of tokens, and
a forward is filled up to the next of them. What padding tokens compute is never read: attention sees the
forward's own tokens only, and no token's row of a matrix product or norm depends on another's.
"""

from dataclasses import dataclass, fields
from functools import partial

import torch

from engine.attention.protocol import AttentionPlan
from engine.batch import ForwardBatch
from engine.executors.capture import Capture
from engine.executors.graph_sizes import padded_size, token_sizes
from engine.marks import mark
from engine.models.llama import LlamaModel, attend
from engine.operators import Operator

__all__ = ["Pieces", "PiecewiseGraphs"]


@dataclass(frozen=True, slots=True)
class _Buffers:
    """What pieces hand to one another and to attention, (tokens, ...) each; all layers and sizes share it."""

    input_ids: torch.Tensor
    residual: torch.Tensor
    qkv: torch.Tensor
    attended: torch.Tensor
    update: torch.Tensor  # of the last layer

    @classmethod
    def allocate(cls, model: LlamaModel, tokens: int) -> "_Buffers":
        shape = model.shape

        def rows(width: int) -> torch.Tensor:
            return torch.zeros((tokens, width), dtype=model.dtype, device=model.device)

        return cls(
            input_ids=torch.zeros(tokens, dtype=torch.int64, device=model.device),
            residual=rows(shape.hidden_size),
            qkv=rows(shape.q_size + 2 * shape.kv_size),
            attended=rows(shape.q_size),
            update=rows(shape.hidden_size),
        )

    def narrowed(self, tokens: int) -> "_Buffers":
        """The first so many tokens of each, in the same memory."""
        return _Buffers(**{field.name: getattr(self, field.name)[:tokens] for field in fields(self)})


class Pieces:
    """LlamaModel's `forward` for up to `size` tokens: one piece before each attention and one at the end.

    Only attention, and what is computed of rows with logits alone, are launched as in the model's own.
    """

    def __init__(self, model: LlamaModel, buffers: _Buffers, capture: Capture) -> None:
        """Captures all pieces, in buffers of `size` tokens."""
        self.size = len(buffers.input_ids)
        self._model = model
        self._buffers = buffers
        self._graphs = [capture(partial(self._piece, i)) for i in range(model.shape.num_layers + 1)]
        self.held_bytes = max(graph.held_bytes for graph in self._graphs)
        """What the largest piece computes in; no two run at once."""

    def forward(
        self,
        input_ids: torch.Tensor,
        rotations: torch.Tensor,
        attention: AttentionPlan,
        logit_tokens: torch.Tensor,
    ) -> torch.Tensor:
        """See LlamaModel; `attention` is a plan of the forward's own tokens."""
        tokens, buffers = len(input_ids), self._buffers
        buffers.input_ids[:tokens].copy_(input_ids)
        *before_attention, last = self._graphs
        for i, graph in enumerate(before_attention):
            mark(Operator.OTHER)  # kernels of a replay are told apart by their order, not by marks
            graph.replay()
            attended = attend(attention, i, buffers.qkv[:tokens], rotations)
            mark(Operator.COPY, i)
            buffers.attended[:tokens].copy_(attended)
            del attended
        mark(Operator.OTHER)
        last.replay()
        return self._model.head(buffers.update, buffers.residual, logit_tokens)

    def _piece(self, i: int) -> None:
        """From the attention of layer i - 1 to that of layer i; the first begins with the embedding."""
        model, buffers = self._model, self._buffers
        update = None
        if i == 0:
            buffers.residual.copy_(model.embed(buffers.input_ids))
        else:
            update = model.after_attention(i - 1, buffers.attended)
            update = model.mlp(i - 1, update, buffers.residual)
        if i < model.shape.num_layers:
            buffers.qkv.copy_(model.qkv(i, update, buffers.residual))
        elif update is not None:
            buffers.update.copy_(update)


class PiecewiseGraphs:
    """Captures pieces for each padded number of tokens when it is first needed, or all by `capture_all`."""

    def __init__(self, model: LlamaModel, max_tokens: int, capture: Capture) -> None:
        """For forwards of up to `max_tokens` tokens; all graphs share the buffers."""
        self.max_tokens = max_tokens
        self._model = model
        self._capture = capture
        self._sizes = token_sizes(max_tokens)
        self._buffers = _Buffers.allocate(model, max_tokens)
        self._pieces: dict[int, Pieces] = {}

    def fitting(self, batch: ForwardBatch) -> Pieces | None:
        """The smallest pieces that hold the batch; None if none do, and for decode rows alone.

        A forward by them must have been computed before the next one begins.
        """
        size = padded_size(len(batch.input_ids), self._sizes) if batch.num_extend_seqs else None
        return None if size is None else self._of(size)

    def capture_all(self) -> None:
        """Capture every size; the largest goes first, so that the others find room in its memory."""
        for size in reversed(self._sizes):
            self._of(size)

    def _of(self, size: int) -> Pieces:
        if size not in self._pieces:
            self._pieces[size] = Pieces(self._model, self._buffers.narrowed(size), self._capture)
        return self._pieces[size]
