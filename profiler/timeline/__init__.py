"""What both UIs draw of a trace: forwards, lanes, counters and sums of any window, at any zoom."""
