"""From results to figures, tables and one HTML file. Needs no torch of its own."""

from relakit.report.figure_files import why_no_figures
from relakit.report.figures import write_figures
from relakit.report.html_file import write_report
from relakit.report.tables import write_tables

__all__ = ["why_no_figures", "write_figures", "write_report", "write_tables"]
