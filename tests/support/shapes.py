"""Shapes of published models that several tests reckon with."""

from engine.shapes import ModelShape

__all__ = ["LLAMA_8B"]

LLAMA_8B = ModelShape(
    architecture="llama",
    name="8B",
    num_layers=32,
    hidden_size=4096,
    num_heads=32,
    num_kv_heads=8,
    head_dim=128,
    intermediate_size=14336,
    vocab_size=128256,
    max_position_embeddings=131072,
    rope_theta=5e5,
    rms_norm_eps=1e-5,
)
