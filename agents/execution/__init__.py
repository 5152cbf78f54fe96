"""How work runs: in shards over processes, on an event loop, and with which memory settings."""
