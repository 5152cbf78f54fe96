"""The HTTP side: routes, the wire format and the server."""
