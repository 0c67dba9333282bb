"""A verdict and its trace as text for people and JSON for programs. Reads, never judges.

Nothing here needs vLLM or torch: a saved trace is reported anywhere.
"""

from vcachediag.report.console import print_report
from vcachediag.report.json_report import render_json
from vcachediag.report.text import render_text

__all__ = ["print_report", "render_json", "render_text"]
