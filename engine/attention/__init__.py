"""Attention of a ragged batch over paged KV, behind one protocol."""
