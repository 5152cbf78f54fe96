"""Training: the base model, LoRA adapters, packed forward passes, losses and checkpoints."""
