"""From text to tokens: codecs, and the append-only Episode."""
