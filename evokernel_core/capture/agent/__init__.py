"""The torch agent: a process in the user's interpreter that captures graphs and runs references.

It needs the standard library and torch, nothing else: the user's environment is not ours. Start it
as ``python -I <this folder>``; it speaks JSON-RPC 2.0 with Content-Length framing on stdin and stdout.
With ``--until-eof DESCRIPTOR`` it ends when that pipe does, whatever it is doing (``watcher.py``).
"""
