"""The dense Llama family and its weights."""
