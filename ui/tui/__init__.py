"""The terminal's picture of a trace: replay, live following, one screen drawn line by line."""
