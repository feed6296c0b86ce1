"""Renews what the chart has from the code: `make chart`. The manifests are deploy/render.sh's, which needs helm."""

from __future__ import annotations

import sys
from pathlib import Path

from tools.chart.dashboards import DASHBOARDS, dashboard_text
from tools.chart.readme import UndescribedError, with_values
from tools.chart.schema import schema_text

CHART = Path(__file__).resolve().parents[2] / "deploy" / "helm" / "htas"


def main() -> int:
    readme = CHART / "README.md"
    (CHART / "values.schema.json").write_text(schema_text())
    (CHART / "files" / "dashboards").mkdir(exist_ok=True)
    for name in DASHBOARDS:
        (CHART / "files" / "dashboards" / f"{name}.json").write_text(dashboard_text(name))
    try:
        readme.write_text(with_values(readme.read_text(), (CHART / "values.yaml").read_text()))
    except UndescribedError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
