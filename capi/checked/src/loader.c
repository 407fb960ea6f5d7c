/* A profiler library that loads another one and puts the checking proxy in front of it, without rebuilding
 * it.
 *
 *     CORECLR_PROFILER_PATH=libseedwalkcheck.so  (the class id is the other's)
 *     SEEDWALK_CHECKED_LIBRARY=PATH              the profiler to check
 *     SEEDWALK_CHECKED_OUT=FILE                  a line for each broken rule, once each
 *                                                for a method and place; without, stderr
 *
 * A line: RULE, METHOD, PLACE, what happens, what to do, with tabs between. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

#ifdef _WIN32
#define WIN32_LEAN_AND_MEAN
#include <windows.h>
#define EXPORT __declspec(dllexport)
static void *load(const char *path, const char *name)
{
	HMODULE m = LoadLibraryA(path);
	return m ? (void *)GetProcAddress(m, name) : NULL;
}
#else
#include <dlfcn.h>
#define EXPORT __attribute__((visibility("default")))
static void *load(const char *path, const char *name)
{
	void *m = dlopen(path, RTLD_NOW);
	return m ? dlsym(m, name) : NULL;
}
#endif

typedef hresult (*class_object_fn)(const void *, const void *, void **);
typedef hresult (*create_fn)(void *, void *, const void *, void **);
enum { CREATE_INSTANCE = 3, E_FAIL_ = 0x80004005u };

/* Reported so far: each rule, method, and place once. They are static strings, so their addresses identify
 * them. */
enum { SEEN = 256 };
static struct {
	const char *rule, *method, *place;
} seen[SEEN];
static int seen_count;
static FILE *out;

static int is_new(const seedwalk_violation *v)
{
	int n = __atomic_load_n(&seen_count, __ATOMIC_ACQUIRE);
	for (int i = 0; i < n && i < SEEN; i++)
		if (seen[i].rule == v->rule && seen[i].method == v->method && seen[i].place == v->place)
			return 0;
	n = __atomic_fetch_add(&seen_count, 1, __ATOMIC_ACQ_REL);
	if (n >= SEEN)
		return 0;
	seen[n].rule = v->rule, seen[n].method = v->method, seen[n].place = v->place;
	return 1;
}

static void report(const seedwalk_violation *v, void *client)
{
	(void)client;
	if (is_new(v))
		fprintf(out ? out : stderr, "%s\t%s\t%s\t%s\t%s\n", v->rule, v->method, v->place, v->text, v->remedy);
}

static void *real_factory;

static hresult create(void *self, void *outer, const void *id, void **made)
{
	(void)self;
	hresult hr = METHOD(real_factory, CREATE_INSTANCE, create_fn)(real_factory, outer, id, made);
	if (hr)
		return hr;
	void *checked = seedwalk_checked_profiler(*made, report, NULL);
	*made = checked ? checked : *made;
	return 0;
}

static hresult query(void *self, const void *id, void **made)
{
	(void)id;
	*made = self;
	return 0;
}

static uint32_t one(void) { return 1; }
static hresult ok(void) { return 0; }

static void *factory_methods[] = {(void *)query, (void *)one, (void *)one, (void *)create, (void *)ok};
static void *factory = factory_methods;

EXPORT hresult DllGetClassObject(const void *class_id, const void *id, void **made)
{
	const char *path = getenv("SEEDWALK_CHECKED_LIBRARY"), *file = getenv("SEEDWALK_CHECKED_OUT");
	class_object_fn get = path ? (class_object_fn)load(path, "DllGetClassObject") : NULL;
	if (!get) {
		fprintf(stderr, "seedwalkcheck: SEEDWALK_CHECKED_LIBRARY (%s) is no profiler that can be loaded\n", path ? path : "not set");
		return E_FAIL_;
	}
	out = file ? fopen(file, "w") : NULL;
	if (out)
		setvbuf(out, NULL, _IOLBF, 1024);
	hresult hr = get(class_id, id, &real_factory);
	if (hr == 0)
		*made = &factory;
	return hr;
}

EXPORT hresult DllCanUnloadNow(void) { return 1; }
