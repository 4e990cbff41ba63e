"""Operators between matrix products and attention, behind one protocol."""
