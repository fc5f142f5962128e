"""The only place that knows JSON-RPC and pygls: bytes, frames, requests, questions, events out."""
