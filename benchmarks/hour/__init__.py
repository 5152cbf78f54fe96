"""The hour test: rules written from prompts and 60 train Tasks alone, placed on a ladder."""
