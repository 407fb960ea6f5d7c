/* See held_windows.h. The section's name contains the process's number and the secret of the connection,
 * which no other user knows. */
#include "held_windows.h"

#include <stdio.h>
#include <string.h>
#include <windows.h>

#include "platform.h"

static struct sw_held unseen; /* used without a section: then nothing reads it */
static struct sw_held *held = &unseen;

static const char *secret(void)
{
	const char *where = sw_environment("SEEDWALK_SOCKET");
	const char *colon = where ? strrchr(where, ':') : NULL;
	return colon ? colon + 1 : NULL;
}

/* The section lives as long as the process. */
void sw_held_init(uint32_t sampler)
{
	const char *with = secret();
	char name[128];
	if (!with || snprintf(name, sizeof name, "Local\\seedwalk-held-%lu-%s", GetCurrentProcessId(), with) >= (int)sizeof name)
		return;
	HANDLE h = CreateFileMappingA(INVALID_HANDLE_VALUE, NULL, PAGE_READWRITE, 0, sizeof *held, name);
	struct sw_held *seen = h ? MapViewOfFile(h, FILE_MAP_WRITE, 0, 0, sizeof *held) : NULL;
	if (!seen)
		return;
	seen->sampler = sampler;
	held = seen;
}

void sw_held_set(uint32_t thread) { __atomic_store_n(&held->thread, thread, __ATOMIC_SEQ_CST); }
