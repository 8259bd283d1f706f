/* Stands for a library of the driver. */
const char *behind(void) { return "driver"; }
