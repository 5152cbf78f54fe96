"""A warehouse in text: which orders to pick together and how to walk, and what to reorder when."""
