"""What is wrong with a run in plain words, each with its evidence and an option that would mend it."""
