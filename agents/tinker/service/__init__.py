"""A local service that speaks the Tinker wire protocol for any Hugging Face causal language model."""
