"""`python -m ui` is `chunkscope`."""

from ui.cli import main

main()
