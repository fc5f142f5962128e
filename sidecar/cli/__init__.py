"""The terminal as a host: it spawns the sidecar and talks to it as an editor would."""
