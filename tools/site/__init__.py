"""The documentation as a site: its reference made from the code, and what stands outside docs/ brought in."""
