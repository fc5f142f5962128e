"""What travels on the wire, as values: nouns, messages, events, errors, and the strict codec.

Knows attrs and cattrs alone. Nothing here does input or output.
"""
