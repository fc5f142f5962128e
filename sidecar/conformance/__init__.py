"""The conformance kit: judges any implementation of the protocol, from outside, by numbered rules.

It knows the published protocol (`protocol`, `schema`) and nothing of how ours is made. The rules and the
conversations that prove them are data: `transcripts/`, whose README describes the format.
"""
