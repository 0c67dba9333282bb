"""Recorders that sit inside vLLM: they see and append, and neither judge nor raise."""
