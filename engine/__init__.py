"""The chunked-prefill engine: schedules, computes, and tells observers what happened.

It refuses to know how a trace is stored, analysed or drawn.
"""
