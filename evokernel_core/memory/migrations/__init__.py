"""The schema's history: one module per step, named m001_initial and so on, never edited later."""
