"""Notices sent to a web server: as JSON, or in the form that Slack's incoming webhooks take."""
