"""The only place that knows a vendor's JSON: one file a model API, and the table PROVIDERS."""
