"""Where papers come from: OpenAlex snapshots, SciSciNet-v2 tables, and JSON lines of our own."""
