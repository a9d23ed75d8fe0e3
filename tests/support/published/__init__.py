"""Published figures and reports beside ours: the data and the command of docs/evidence.md."""
