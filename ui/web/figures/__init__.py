"""Plotly figures, each a pure function of frames and a theme."""
