"""The schema and its history: one module per step, never edited once a version has it."""
