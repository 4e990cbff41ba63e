"""KV bookkeeping in plain integers: pages, request rows, the radix tree. No tensors."""
