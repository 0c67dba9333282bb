"""Whether the names and signatures that we need are in many vLLM releases, read from sources."""
