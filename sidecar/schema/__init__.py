"""The protocol as data, made from its types: a model of it, and from that JSON Schema, TypeScript and Lua."""
