"""The only place that knows JSON-RPC and pygls: bytes, frames, requests, questions, events out."""

from sidecar.server.lean_lsp import import_lsp_types

import_lsp_types()
