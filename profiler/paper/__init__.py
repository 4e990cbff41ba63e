"""Forwards on paper: what any decoder's configuration says of its FLOPs, bytes and KV, before any run."""
