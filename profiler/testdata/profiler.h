/* What all small profilers for tests have in common: a class factory, and a callback object whose methods do
 * nothing, except those that the profiler names at its end, each with its slot of ICorProfilerCallback:
 *
 *     PROFILER({3, initialize}, {14, module_loaded})
 *
 * Source: dotnet/runtime src/coreclr/inc/corprof.idl. */
#include <stddef.h>
#include <stdint.h>

#ifdef _WIN32
#define EXPORT __declspec(dllexport)
#else
#define EXPORT __attribute__((visibility("default")))
#endif

typedef uint32_t hresult;
struct object { void **table; };
struct method { int slot; void *function; };

static hresult nothing(void) { return 0; }
static uint32_t reference(void) { return 1; }
static hresult query(void *self, const void *id, void **out) { return (void)id, *out = self, 0; }

static void *callback_table[128];
static struct object callback_object = {callback_table};
static hresult create(void *self, void *outer, const void *id, void **out) { return (void)self, (void)outer, (void)id, *out = &callback_object, 0; }

static void *factory_table[] = {(void *)query, (void *)reference, (void *)reference, (void *)create, (void *)nothing};
static struct object factory_object = {factory_table};

static hresult made(const struct method *methods, size_t count, void **out)
{
	for (size_t i = 0; i < sizeof callback_table / sizeof *callback_table; i++)
		callback_table[i] = (void *)nothing;
	callback_table[0] = (void *)query;
	callback_table[1] = callback_table[2] = (void *)reference;
	for (size_t i = 0; i < count; i++)
		callback_table[methods[i].slot] = methods[i].function;
	*out = &factory_object;
	return 0;
}

#define PROFILER(...)                                                                                \
	EXPORT hresult DllGetClassObject(const void *class_id, const void *id, void **out)           \
	{                                                                                            \
		static const struct method methods[] = {__VA_ARGS__};                                \
		return (void)class_id, (void)id, made(methods, sizeof methods / sizeof *methods, out); \
	}                                                                                            \
	EXPORT hresult DllCanUnloadNow(void) { return 1; }
