"""Command line and pictures: draws answers, computes none."""
