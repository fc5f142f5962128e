"""The model loop: sessions, runs, turns."""
