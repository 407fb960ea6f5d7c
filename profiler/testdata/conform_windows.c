/* The same profiler for Windows: what differs is inside. */
#include "conform.c"
