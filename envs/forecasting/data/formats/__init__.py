"""One module per format; each turns a row into the questions it holds."""
