"""One module a format; each turns a row into the questions it holds."""
