"""What the chart has from the code: the schema of its values, the table of them in its README, its dashboards."""
