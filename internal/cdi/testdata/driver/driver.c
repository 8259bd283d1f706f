/* A minimal library of the driver, for tests. */
const char *behind(void) { return "driver"; }
