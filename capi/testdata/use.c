// A shared library with the archive in it, as a profiler that links it is.
#include "seedwalk.h"

extern int used(void);

int used(void)
{
	return (int)seedwalk_version(0, 0);
}
