"""For tools that give HTAS what it complains of, rightly: their own lines would drown in its log."""

from __future__ import annotations

import logging

import structlog


def silence() -> None:
    """Log nothing from now on."""
    logging.disable()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
