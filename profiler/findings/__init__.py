"""What is wrong with a run, in plain words: findings with their evidence, and an option that would mend each."""
