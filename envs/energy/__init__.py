"""Energy control with a safety floor: a microgrid with a reserve, and a heated house."""
