"""What outlives the process: sessions, events, decisions, rules, in one SQLite file. SQL is spoken here alone."""
