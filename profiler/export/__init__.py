"""What a trace looks like as a drawing for other tools: forwards, requests, counters, arrows."""
