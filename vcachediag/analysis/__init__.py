"""Judgement: pure functions of a trace."""
