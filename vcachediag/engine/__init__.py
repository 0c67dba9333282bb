"""The only importer of vLLM and torch."""
