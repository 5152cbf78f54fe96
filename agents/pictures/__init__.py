"""Pictures of episodes, one module a world; `save` has the one function to call."""
