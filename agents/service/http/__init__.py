"""The HTTP side: routes, the wire format, the server and the stub that replaces a dead one."""
