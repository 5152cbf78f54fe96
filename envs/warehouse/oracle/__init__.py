"""Optima: exact for picking and for stock, an upper bound for full days."""
