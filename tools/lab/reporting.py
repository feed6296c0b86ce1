"""`python -m tools.lab report`: tables and figures of what `run` found."""

from __future__ import annotations

from pathlib import Path

from htas.cli.console import InputError
from tools.lab.report.drawing import NoMatplotlibError
from tools.lab.report.writing import REPORT, write_report
from tools.lab.results import ResultsError


def report(folder: Path, into: Path | None) -> str:
    """Write the report and say which files. Raises InputError on a folder without results, NoMatplotlibError."""
    place = into if into is not None else folder
    try:
        files = write_report(folder, place)
    except ResultsError as error:
        raise InputError(str(error)) from None
    except NoMatplotlibError as error:
        raise NoMatplotlibError(f"{error}; the tables are written: {place / REPORT}") from None
    except OSError as error:
        raise InputError(f"{place}: cannot be written to: {error.strerror}") from None
    return "\n".join(str(file) for file in files)
