"""The report on the edge experiment: tables with the document's goals, and KubeDSM's Figures 4 to 11."""
