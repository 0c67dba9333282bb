"""Find out why vLLM's prefix caching changes a model's answer, and who is at fault."""

__version__ = "0.1.0"
