/* The modules of the process according to its loader, and whether any were loaded or unloaded. The loader
 * reports changes on the thread that loads, under its lock, so the callback only increments a counter.
 *
 * EnumProcessModules and GetModuleInformation are not used: they read the loader's list again for every
 * module, as if it were another process's.
 *
 * Source: Windows LdrRegisterDllNotification; ntdll's LdrEnumerateLoadedModules and the x64
 * LDR_DATA_TABLE_ENTRY, as debuggers' public symbols show them. */
#include "platform.h"

#include <string.h>
#include <windows.h>

static uint64_t changes = 1;

static void CALLBACK changed(ULONG reason, const void *data, void *context)
{
	(void)reason, (void)data, (void)context;
	__atomic_add_fetch(&changes, 1, __ATOMIC_RELEASE);
}

typedef LONG(NTAPI *register_fn)(ULONG, void(CALLBACK *)(ULONG, const void *, void *), void *, void **);
typedef void(NTAPI *each_fn)(const uint8_t *entry, void *context, BOOLEAN *stop);
typedef LONG(NTAPI *enumerate_fn)(ULONG, each_fn, void *);
static enumerate_fn enumerate;

static void *of_ntdll(const char *name) { return (void *)GetProcAddress(GetModuleHandleA("ntdll.dll"), name); }

/* Returns 0 if the loader accepts the callback. */
int sw_loader_init(void)
{
	static void *cookie;
	register_fn f = (register_fn)of_ntdll("LdrRegisterDllNotification");
	enumerate = (enumerate_fn)of_ntdll("LdrEnumerateLoadedModules");
	return !f || !enumerate || f(0, changed, NULL, &cookie) != 0;
}

uint64_t sw_loader_changes(void) { return __atomic_load_n(&changes, __ATOMIC_ACQUIRE); }

/* Offsets in LDR_DATA_TABLE_ENTRY: a UNICODE_STRING is bytes, room, pointer. Image data is taken from here
 * and not from the image's headers, because protected programs erase their headers or make them
 * unreadable. */
enum { DLL_BASE = 0x30, IMAGE_SIZE = 0x40, FULL_NAME = 0x48, FULL_NAME_TEXT = 0x50, TIME_STAMP = 0x80 };

struct collection {
	struct sw_module *out;
	int room, count;
};

/* Runs under the loader's lock, so the entry stays valid. */
static void NTAPI collect(const uint8_t *entry, void *context, BOOLEAN *stop)
{
	struct collection *c = context;
	const uint8_t *base;
	const uint16_t *name;
	uint16_t bytes;
	memcpy(&base, entry + DLL_BASE, sizeof base);
	memcpy(&bytes, entry + FULL_NAME, sizeof bytes);
	memcpy(&name, entry + FULL_NAME_TEXT, sizeof name);
	*stop = c->count == c->room;
	if (*stop || !base)
		return;
	struct sw_module *m = &c->out[c->count++];
	m->base = (uint64_t)base;
	memcpy(&m->size, entry + IMAGE_SIZE, sizeof m->size);
	memcpy(&m->stamp, entry + TIME_STAMP, sizeof m->stamp);
	sw_utf8(name, name ? bytes / 2u : 0, m->path, sizeof m->path);
}

/* Copies the list of modules; never while anything is suspended. Returns their number, or -1. */
int sw_modules(struct sw_module *out, int room)
{
	struct collection c = {out, room, 0};
	return enumerate(0, collect, &c) < 0 ? -1 : c.count;
}
