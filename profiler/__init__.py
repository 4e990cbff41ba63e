"""Watches an engine, and turns traces into answers. It refuses to know who draws them."""
