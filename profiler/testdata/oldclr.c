/* Loads the profiler like a runtime and offers it an old interface: an IUnknown that knows
 * ICorProfilerInfo up to the given version.
 *     oldclr PROFILER VERSION
 *
 * Prints the result of Initialize. For Linux and for Windows. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef _WIN32
#include <windows.h>
static void *load(const char *path) { return (void *)LoadLibraryExA(path, NULL, LOAD_WITH_ALTERED_SEARCH_PATH); }
static void *symbol(void *library, const char *name) { return (void *)GetProcAddress(library, name); }
static const char *why(void)
{
	static char text[40];
	snprintf(text, sizeof text, "Windows error %lu", GetLastError());
	return text;
}
#else
#include <dlfcn.h>
static void *load(const char *path) { return dlopen(path, RTLD_NOW); }
static void *symbol(void *library, const char *name) { return dlsym(library, name); }
static const char *why(void) { return dlerror(); }
#endif

struct guid {
	uint32_t a;
	uint16_t b, c;
	uint8_t d[8];
};

static const struct guid factory = {1, 0, 0, {0xc0, 0, 0, 0, 0, 0, 0, 0x46}};
static const struct guid callback8 = {0x5bed9b15, 0xc079, 0x4d47, {0xbf, 0xe2, 0x21, 0x5a, 0x14, 0x0c, 0x07, 0xe0}};
static const struct {
	int version;
	struct guid id;
} infos[] = {
	{3, {0xb555ed4f, 0x452a, 0x4e54, {0x8b, 0x39, 0xb5, 0x36, 0x0b, 0xad, 0x32, 0xa0}}},
	{8, {0xc5ac80a6, 0x782e, 0x4716, {0x80, 0x44, 0x39, 0x59, 0x8c, 0x60, 0xcf, 0xbf}}},
};

static int version;
static void *table[128];
static void **object = table;

static uint32_t query(void *self, const struct guid *id, void **out)
{
	*out = NULL;
	for (size_t i = 0; i < sizeof infos / sizeof *infos; i++)
		if (version >= infos[i].version && memcmp(id, &infos[i].id, sizeof *id) == 0)
			*out = self;
	return *out ? 0 : 0x80004002u;
}

static uint32_t answer(void) { return 0; }

typedef uint32_t (*get_class_fn)(const void *, const void *, void **);
typedef uint32_t (*create_fn)(void *, void *, const void *, void **);
typedef uint32_t (*initialize_fn)(void *, void *);

int main(int argc, char **argv)
{
	if (argc != 3)
		return 2;
	version = atoi(argv[2]);
	for (size_t i = 0; i < sizeof table / sizeof *table; i++)
		table[i] = (void *)answer;
	table[0] = (void *)query;
	void *lib = load(argv[1]);
	if (!lib) {
		fprintf(stderr, "%s\n", why());
		return 1;
	}
	void *made, *profiler;
	if (((get_class_fn)symbol(lib, "DllGetClassObject"))(&factory, &factory, &made))
		return 3;
	if (((create_fn)(*(void ***)made)[3])(made, NULL, &callback8, &profiler))
		return 4;
	printf("%08x\n", ((initialize_fn)(*(void ***)profiler)[3])(profiler, &object));
	return 0;
}
