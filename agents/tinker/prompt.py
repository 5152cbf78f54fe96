"""A Prompt: the tokens of one role as the chunks of Tinker's ModelInputs, grown by appending."""

from tinker import EncodedTextChunk, ModelInput

# Shared, as a set of its own for each of the many objects would take more room than their tokens.
_CHUNK_FIELDS = {"tokens"}
_INPUT_FIELDS = {"chunks"}


class TokenPrompt:
    """Tokens that only grow, handed out as ModelInputs that share their chunks.

    Each `append` makes one chunk, so a conversation of T turns has T chunks, and the next
    observation costs its new tokens plus T pointers. Validation is skipped (`model_construct`): it
    would read every token again, and these come from a tokenizer or a sampler.
    """

    def __init__(self) -> None:
        self._chunks: list[EncodedTextChunk] = []

    def append(self, tokens: list[int]) -> None:
        """Add tokens at the end. The list is kept; do not change it afterwards."""
        # The sampler refuses chunks without tokens.
        if tokens:
            self._chunks.append(EncodedTextChunk.model_construct(_CHUNK_FIELDS, tokens=tokens))

    def clear(self) -> None:
        """Start again; ModelInputs handed out before keep their tokens."""
        self._chunks.clear()

    def model_input(self) -> ModelInput:
        """Return all tokens so far."""
        return ModelInput.model_construct(_INPUT_FIELDS, chunks=self._chunks.copy())
