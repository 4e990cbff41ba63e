"""The web UI: pages that draw what the analyses answer."""
