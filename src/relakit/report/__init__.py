"""From results to figures, tables and one HTML file. No torch here."""

from typing import TYPE_CHECKING

from relakit.lazy_names import lazy_names

if TYPE_CHECKING:
    from relakit.report.figure_files import why_no_figures
    from relakit.report.figures import write_figures
    from relakit.report.page_file import write_page
    from relakit.report.report_folder import WrittenReport, check_report_folder, write_report
    from relakit.report.tables import write_tables

__all__ = [
    "WrittenReport",
    "check_report_folder",
    "why_no_figures",
    "write_figures",
    "write_page",
    "write_report",
    "write_tables",
]

__getattr__ = lazy_names(
    __name__,
    {
        "WrittenReport": "report_folder",
        "check_report_folder": "report_folder",
        "why_no_figures": "figure_files",
        "write_figures": "figures",
        "write_page": "page_file",
        "write_report": "report_folder",
        "write_tables": "tables",
    },
)
