"""Many hosts behind one service, through Ray.

    service ─(JSON lines)─> driver ─(Ray: bytes of JSON)─> host ─(JSON lines)─> worker

The service keeps the queue and imports no Ray; its driver is a child process that may die. A host is
one Ray actor for one device, and its worker is the child process that the service has without Ray.
"""
