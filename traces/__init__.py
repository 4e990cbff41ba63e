"""The trace: schema, storage, exchange with other tools. pyarrow only."""
