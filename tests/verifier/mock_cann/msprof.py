"""Mock of msprof: it is looked for and not called."""
