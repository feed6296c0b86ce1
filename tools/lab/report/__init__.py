"""The report on an experiment: tables in Markdown, and the HTAS paper's Figures 3 to 8 drawn from the same results."""
