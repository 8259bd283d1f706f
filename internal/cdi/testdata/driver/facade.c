/* Stands for a facade: it defines one thing, and the driver behind it the rest. */
const char *front(void) { return "facade"; }
