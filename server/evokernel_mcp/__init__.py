"""The MCP server: what the editor has, for coding agents, over standard input and output."""
