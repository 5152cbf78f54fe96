"""Questions at a desk: notes of an archive may be read at a price before the answer is given."""
