"""The stall ledger: every nanosecond of every wait, charged to what it went to."""
