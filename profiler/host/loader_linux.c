/* Detects whether shared objects were loaded or unloaded. */
#define _GNU_SOURCE
#include "shim.h"

#include <link.h>

static int count_changes(struct dl_phdr_info *info, size_t size, void *data)
{
	(void)size;
	*(uint64_t *)data = info->dlpi_adds + info->dlpi_subs;
	return 1;
}

/* Grows whenever a shared object is loaded or unloaded. */
uint64_t sw_loader_changes(void)
{
	uint64_t n = 0;
	dl_iterate_phdr(count_changes, &n);
	return n;
}
