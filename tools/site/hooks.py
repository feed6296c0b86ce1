"""What MkDocs calls while it builds the site (mkdocs.yml, `hooks`): pages that are made, and links that leave docs/.

A link of docs/openstack.md to `../deploy/openstack/cloud-init.yaml` is right for whoever reads the repository; the site
has that file at the same place beside its pages, so that the same text is right there.
"""

from __future__ import annotations

import posixpath
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from tools.site.api import api_page
from tools.site.commands import commands_page
from tools.site.configuration import configuration_page, price_file_page
from tools.site.metrics import metrics_page
from tools.site.outside import OUTSIDE, as_on_site, named_files
from tools.site.vocabulary import events_page, labels_page, reasons_page

ROOT = Path(__file__).resolve().parents[2]
MADE = {
    "reference/configuration.md": configuration_page,
    "reference/price-file.md": price_file_page,
    "reference/commands.md": commands_page,
    "reference/api.md": api_page,
    "reference/metrics.md": metrics_page,
    "reference/events.md": events_page,
    "reference/labels.md": labels_page,
    "reference/reasons.md": reasons_page,
}
"""Pages of which no file is kept: they say what the code says."""
SHIM, SHIM_ELSEWHERE = "assets/iframe-worker.js", "https://unpkg.com/iframe-worker/shim"
"""The search of a site that is read from a folder needs it. The plugin `offline` names an address; we have a copy."""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are made, those that stand outside docs/, and the files that any page names."""
    for place, made in MADE.items():
        files.append(File.generated(config, place, content=made()))
    for place, source in OUTSIDE.items():
        files.append(File.generated(config, place, content=(ROOT / source).read_text()))
    files.append(File.generated(config, SHIM, abs_src_path=str(Path(__file__).with_name("iframe-worker.js"))))
    for source in named_files(ROOT):
        files.append(File.generated(config, source, abs_src_path=str(ROOT / source)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Turn links as the repository needs them into those of the site."""
    del config, files  # MkDocs gives them by name
    place = page.file.src_uri
    return as_on_site(markdown, place, OUTSIDE.get(place, f"docs/{place}"))


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    """Load nothing from elsewhere."""
    del config
    return output.replace(SHIM_ELSEWHERE, posixpath.relpath(SHIM, posixpath.dirname(page.url) or "."))


def on_post_template(output: str, template_name: str, config: MkDocsConfig) -> str:
    """The same for 404.html, which is no page."""
    del template_name, config
    return output.replace(SHIM_ELSEWHERE, SHIM)
