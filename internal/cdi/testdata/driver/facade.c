/* A minimal facade: it defines one function, and the driver's library the others. */
const char *front(void) { return "facade"; }
