"""What the chart has in common with the code: the schema of its values, and the table of them in its README."""
