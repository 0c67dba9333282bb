"""Tests of the reports; a package so that its builders can be imported."""
