"""Functions for SQL and DataFrames, as they work without any index."""
