/* The sampler's calls of the CLR, through ICorProfilerInfo's vtable. Only the sampler thread makes them.
 * Slots as in dotnet/runtime corprof.idl. */
#include "shim.h"

#include <string.h>

void *sw_info;
int sw_info_version;

enum {
	QUERY_INTERFACE = 0,
	GET_FUNCTION_FROM_IP = 7,
	IS_ARRAY_CLASS = 11,
	GET_TOKEN_AND_METADATA = 19,
	GET_MODULE_INFO = 20,
	GET_IL_TO_NATIVE_MAPPING = 35,
	DO_STACK_SNAPSHOT = 36,
	GET_FUNCTION_INFO2 = 38,
	GET_CLASS_ID_INFO2 = 41,
	GET_CODE_INFO2 = 42,
	GET_RUNTIME_INFORMATION = 67,
	ENUM_JITED_FUNCTIONS2 = 79,
	GET_NATIVE_CODE_START_ADDRESSES = 90,
	GET_IL_TO_NATIVE_MAPPING3 = 91,
	SUSPEND_RUNTIME = 97,
	RESUME_RUNTIME = 98,
	/* ICorProfilerFunctionEnum */
	RELEASE = 2,
	ENUM_NEXT = 7,
	/* IMetaDataImport */
	GET_TYPEDEF_PROPS = 12,
	FIND_FIELD = 28,
	GET_METHOD_PROPS = 30,
	GET_NESTED_CLASS_PROPS = 62,
};
enum { E_NOTIMPL_ = 0x80004001u, SNAPSHOT_REGISTER_CONTEXT = 1, CODE_STARTS = 32 };

/* ICorProfilerInfo10 has SuspendRuntime. .NET Core 2.0 was the first with 8; 3 is the
 * oldest that gets an explanation. */
static const struct {
	int version;
	struct sw_guid id;
} iid_infos[] = {
	{10, {0x2f1b5152, 0xc869, 0x40c9, {0xaa, 0x5f, 0x3a, 0xbe, 0x02, 0x6b, 0xd7, 0x20}}},
	{8, {0xc5ac80a6, 0x782e, 0x4716, {0x80, 0x44, 0x39, 0x59, 0x8c, 0x60, 0xcf, 0xbf}}},
	{3, {0xb555ed4f, 0x452a, 0x4e54, {0x8b, 0x39, 0xb5, 0x36, 0x0b, 0xad, 0x32, 0xa0}}},
};

/* Gets the newest of the interfaces above, as sw_info. Returns 0 if the runtime has none of them. */
int sw_get_info(void *unknown)
{
	for (size_t i = 0; i < sizeof iid_infos / sizeof *iid_infos; i++) {
		sw_hresult hr = SW_METHOD(unknown, QUERY_INTERFACE, sw_hresult (*)(void *, const void *, void **))(unknown, &iid_infos[i].id, &sw_info);
		if (hr == 0 && sw_info) {
			sw_info_version = iid_infos[i].version;
			return 1;
		}
	}
	return 0;
}

sw_hresult sw_suspend_runtime(void)
{
	if (sw_info_version < 10)
		return E_NOTIMPL_;
	return SW_METHOD(sw_info, SUSPEND_RUNTIME, sw_hresult (*)(void *))(sw_info);
}

sw_hresult sw_resume_runtime(void)
{
	return SW_METHOD(sw_info, RESUME_RUNTIME, sw_hresult (*)(void *))(sw_info);
}

/* Offsets in the CLR's CONTEXT, whose first 1232 bytes are Win32's. */
enum { CONTEXT_MIN = 0x100, RBX_ = 0x90, RSP_ = 0x98, RBP_ = 0xa0, RSI_ = 0xa8, RDI_ = 0xb0, R12_ = 0xd8, RIP_ = 0xf8 };

static uint64_t word(const uint8_t *context, int offset)
{
	uint64_t v;
	memcpy(&v, context + offset, sizeof v);
	return v;
}

/* DoStackSnapshot's callback: only records. */
static sw_hresult record(uint64_t function, uint64_t ip, uint64_t frame_info, uint32_t size, uint8_t *context, void *client)
{
	(void)frame_info;
	struct sw_slot *s = client;
	if (s->frame_count == SW_FRAME_ROOM) {
		s->full = 1;
		return 1; /* S_FALSE ends the walk */
	}
	struct sw_frame *f = &s->frames[s->frame_count++];
	f->function = function;
	f->ip = ip;
	f->sp = f->fp = 0;
	if (context && size >= CONTEXT_MIN) {
		f->ip = word(context, RIP_);
		f->sp = word(context, RSP_);
		f->fp = word(context, RBP_);
		f->saved[0] = word(context, RBX_);
		for (int i = 0; i < 4; i++)
			f->saved[1 + i] = word(context, R12_ + 8 * i);
#ifdef _WIN32
		f->saved[5] = word(context, RSI_);
		f->saved[6] = word(context, RDI_);
		f->saved[7] = SW_SAVED_MASK;
#endif
	}
	return 0;
}

typedef sw_hresult (*snapshot_fn)(void *, uint64_t, void *, uint32_t, void *, uint8_t *, uint32_t);

sw_hresult sw_snapshot(int slot)
{
	struct sw_slot *s = sw_slot_at(slot);
	uint8_t *seed = s->seeded ? s->seed : NULL; /* never on Linux: the CLR finds its frames itself there */
	s->frame_count = 0;
	s->result = SW_METHOD(sw_info, DO_STACK_SNAPSHOT, snapshot_fn)(sw_info, s->thread_id, (void *)record, SNAPSHOT_REGISTER_CONTEXT, s, seed, seed ? SW_CONTEXT_BYTES : 0);
	return s->result;
}

static sw_hresult count(uint64_t function, uint64_t ip, uint64_t info, uint32_t size, uint8_t *context, void *client)
{
	(void)function, (void)ip, (void)info, (void)size, (void)context;
	++*(int *)client;
	return 1;
}

/* Makes one walk while no thread is suspended. In the first walk, the CLR creates state for the calling
 * thread, and that may take locks. callbacks receives the number of frames that the CLR reported. */
sw_hresult sw_prime(uint64_t thread_id, int *callbacks)
{
	*callbacks = 0;
	sw_function_at((uint64_t)(uintptr_t)callbacks); /* also called in the window */
	return SW_METHOD(sw_info, DO_STACK_SNAPSHOT, snapshot_fn)(sw_info, thread_id, (void *)count, 0, callbacks, NULL, 0);
}

sw_hresult sw_function_from_ip(uint64_t ip, uint64_t *function)
{
	*function = 0;
	return SW_METHOD(sw_info, GET_FUNCTION_FROM_IP, sw_hresult (*)(void *, uint64_t, uint64_t *))(sw_info, ip, function);
}

/* Returns the method whose code contains ip, 0 if none. It writes no Go memory, so that a caller in the
 * window allocates nothing. */
uint64_t sw_function_at(uint64_t ip)
{
	uint64_t function;
	return sw_function_from_ip(ip, &function) & 0x80000000u ? 0 : function;
}

/* Lists some compiled methods with the start of their code, at most room. */
int sw_jitted(uint64_t *functions, uint64_t *starts, int room)
{
	struct {
		uint64_t function, rejit;
	} row;
	struct {
		uint64_t start, size;
	} code;
	void *e = NULL;
	uint32_t n, regions;
	int found = 0;
	if (SW_METHOD(sw_info, ENUM_JITED_FUNCTIONS2, sw_hresult (*)(void *, void **))(sw_info, &e) || !e)
		return 0;
	while (found < room && SW_METHOD(e, ENUM_NEXT, sw_hresult (*)(void *, uint32_t, void *, uint32_t *))(e, 1, &row, &n) == 0 && n == 1) {
		code.start = 0, regions = 0;
		if (SW_METHOD(sw_info, GET_CODE_INFO2, sw_hresult (*)(void *, uint64_t, uint32_t, uint32_t *, void *))(sw_info, row.function, 1, &regions, &code) || !code.start)
			continue;
		functions[found] = row.function;
		starts[found++] = code.start;
	}
	SW_METHOD(e, RELEASE, uint32_t (*)(void *))(e);
	return found;
}

/* Appends text to the zero-terminated string out of room bytes. */
static void append(char *out, int room, const char *text)
{
	size_t n = strlen(out);
	if (n + 1 < (size_t)room)
		strncat(out, text, (size_t)room - n - 1);
}

enum { NAME_UNITS = 512, MAX_NESTING = 16 };

/* Outer types come first: Outer+Inner. */
static void type_name(void *import, uint32_t token, char *out, int room, int depth)
{
	uint16_t name[NAME_UNITS];
	char utf8[3 * NAME_UNITS];
	uint32_t units = 0, flags = 0, base = 0, outer = 0;
	if (SW_METHOD(import, GET_TYPEDEF_PROPS, sw_hresult (*)(void *, uint32_t, uint16_t *, uint32_t, uint32_t *, uint32_t *, uint32_t *))(import, token, name, NAME_UNITS, &units, &flags, &base))
		return;
	int nested = (flags & 7) >= 2; /* tdVisibilityMask: tdNestedPublic and above */
	if (nested && depth < MAX_NESTING && SW_METHOD(import, GET_NESTED_CLASS_PROPS, sw_hresult (*)(void *, uint32_t, uint32_t *))(import, token, &outer) == 0) {
		type_name(import, outer, out, room, depth + 1);
		append(out, room, "+");
	}
	sw_utf8(name, units ? units - 1 : 0, utf8, sizeof utf8);
	append(out, room, utf8);
}

static int has_field(void *import, uint32_t type, const char *name)
{
	uint16_t wide[32];
	uint32_t found = 0;
	size_t n = 0;
	for (; name[n] && n < 31; n++)
		wide[n] = (uint16_t)name[n];
	wide[n] = 0;
	return SW_METHOD(import, FIND_FIELD, sw_hresult (*)(void *, uint32_t, const uint16_t *, const uint8_t *, uint32_t, uint32_t *))(import, type, wide, NULL, 0, &found) == 0 && found;
}

/* Returns the kind of state machine that MoveNext of a compiler-made class belongs to. Its fields show it
 * (Roslyn's, then mcs's); trimming may have removed uncalled methods. */
static const char *state_machine(void *import, uint32_t type, const char *method)
{
	uint16_t name[2];
	uint32_t units = 0, flags = 0, base = 0;
	if (strcmp(method, "MoveNext"))
		return "";
	SW_METHOD(import, GET_TYPEDEF_PROPS, sw_hresult (*)(void *, uint32_t, uint16_t *, uint32_t, uint32_t *, uint32_t *, uint32_t *))(import, type, name, 2, &units, &flags, &base);
	if (units == 0 || name[0] != '<')
		return "";
	if (has_field(import, type, "<>t__builder") || has_field(import, type, "$builder"))
		return " (async)";
	return has_field(import, type, "<>2__current") || has_field(import, type, "$current") ? " (iterator)" : "";
}

static void module_name(uint64_t module, char *out, int room)
{
	uint16_t name[NAME_UNITS];
	uint32_t units = 0;
	uint64_t base, assembly;
	if (SW_METHOD(sw_info, GET_MODULE_INFO, sw_hresult (*)(void *, uint64_t, uint64_t *, uint32_t, uint32_t *, uint16_t *, uint64_t *))(sw_info, module, &base, NAME_UNITS, &units, name, &assembly) == 0)
		sw_utf8(name, units ? units - 1 : 0, out, room);
}

static const struct sw_guid iid_import = {0x7dac8207, 0xd3ae, 0x4c75, {0x9b, 0x67, 0x92, 0x80, 0x1a, 0x49, 0x7d, 0x44}};

/* Writes Namespace.Type+Nested::Method, the kind of state machine, and the module's file: see package
 * clr/demangle. Never called while anything is suspended: it takes the CLR's locks. */
sw_hresult sw_function_name(uint64_t function, char *name, int room, char *module, int module_room)
{
	name[0] = module[0] = 0;
	uint64_t class_id = 0, module_id = 0, args[8];
	uint32_t token = 0, count = 0, type = 0, units = 0;
	sw_hresult hr = SW_METHOD(sw_info, GET_FUNCTION_INFO2, sw_hresult (*)(void *, uint64_t, uint64_t, uint64_t *, uint64_t *, uint32_t *, uint32_t, uint32_t *, uint64_t *))(sw_info, function, 0, &class_id, &module_id, &token, 8, &count, args);
	if (hr & 0x80000000u)
		return hr;
	module_name(module_id, module, module_room);
	void *import = NULL;
	hr = SW_METHOD(sw_info, GET_TOKEN_AND_METADATA, sw_hresult (*)(void *, uint64_t, const void *, void **, uint32_t *))(sw_info, function, &iid_import, &import, &token);
	if (hr & 0x80000000u || !import)
		return hr ? hr : 1;
	uint16_t method[NAME_UNITS];
	char utf8[3 * NAME_UNITS];
	hr = SW_METHOD(import, GET_METHOD_PROPS, sw_hresult (*)(void *, uint32_t, uint32_t *, uint16_t *, uint32_t, uint32_t *, void *, void *, void *, void *, void *))(import, token, &type, method, NAME_UNITS, &units, NULL, NULL, NULL, NULL, NULL);
	if (!(hr & 0x80000000u)) {
		type_name(import, type, name, room, 0);
		append(name, room, name[0] ? "::" : "");
		sw_utf8(method, units ? units - 1 : 0, utf8, sizeof utf8);
		append(name, room, utf8);
		append(name, room, state_machine(import, type, utf8));
	}
	SW_METHOD(import, 2, uint32_t (*)(void *))(import);
	return hr;
}

static uint64_t module_base(uint64_t module)
{
	uint16_t name[1];
	uint32_t units = 0;
	uint64_t base = 0, assembly;
	SW_METHOD(sw_info, GET_MODULE_INFO, sw_hresult (*)(void *, uint64_t, uint64_t *, uint32_t, uint32_t *, uint16_t *, uint64_t *))(sw_info, module, &base, 1, &units, name, &assembly);
	return base;
}

/* Finds a method's metadata, and the type arguments of the method and its class. class_id is 0 if the code
 * is shared and so the class unknown. Same restriction as sw_function_name. */
sw_hresult sw_function_shape(uint64_t function, struct sw_shape *out)
{
	uint64_t module = 0;
	memset(out, 0, sizeof *out);
	sw_hresult hr = SW_METHOD(sw_info, GET_FUNCTION_INFO2, sw_hresult (*)(void *, uint64_t, uint64_t, uint64_t *, uint64_t *, uint32_t *, uint32_t, uint32_t *, uint64_t *))(sw_info, function, 0, &out->class_id, &module, &out->token, SW_TYPE_ARGS, &out->count, out->args);
	if (hr & 0x80000000u || out->count > SW_TYPE_ARGS)
		out->count = 0;
	out->base = hr & 0x80000000u ? 0 : module_base(module);
	return hr;
}

/* The same for a class, or for an array: then rank is not 0 and class_id is its element. */
sw_hresult sw_class_shape(uint64_t class_id, struct sw_shape *out)
{
	uint64_t module = 0, parent = 0;
	uint32_t element = 0;
	memset(out, 0, sizeof *out);
	if (SW_METHOD(sw_info, IS_ARRAY_CLASS, sw_hresult (*)(void *, uint64_t, uint32_t *, uint64_t *, uint32_t *))(sw_info, class_id, &element, &out->class_id, &out->rank) == 0)
		return 0;
	out->class_id = out->rank = 0;
	sw_hresult hr = SW_METHOD(sw_info, GET_CLASS_ID_INFO2, sw_hresult (*)(void *, uint64_t, uint64_t *, uint32_t *, uint64_t *, uint32_t, uint32_t *, uint64_t *))(sw_info, class_id, &module, &out->token, &parent, SW_TYPE_ARGS, &out->count, out->args);
	if (hr & 0x80000000u || out->count > SW_TYPE_ARGS)
		out->count = 0;
	out->base = hr & 0x80000000u ? 0 : module_base(module);
	return hr;
}

/* The nearest start at or before ip among all code of a method, or 0. */
static uint64_t code_start(uint64_t function, uint64_t ip)
{
	uint64_t starts[CODE_STARTS], begin = 0;
	uint32_t count = 0;
	if (sw_info_version < 9) { /* { uintptr_t start; size_t size; } */
		uint64_t blocks[2 * CODE_STARTS];
		if (SW_METHOD(sw_info, GET_CODE_INFO2, sw_hresult (*)(void *, uint64_t, uint32_t, uint32_t *, uint64_t *))(sw_info, function, CODE_STARTS, &count, blocks) & 0x80000000u)
			return 0;
		return count > 0 && blocks[0] <= ip ? blocks[0] : 0;
	}
	if (SW_METHOD(sw_info, GET_NATIVE_CODE_START_ADDRESSES, sw_hresult (*)(void *, uint64_t, uint64_t, uint32_t, uint32_t *, uint64_t *))(sw_info, function, 0, CODE_STARTS, &count, starts) & 0x80000000u)
		return 0;
	for (uint32_t i = 0; i < count && i < CODE_STARTS; i++)
		if (starts[i] <= ip && starts[i] > begin)
			begin = starts[i];
	return begin;
}

/* The IL map of the method's code that contains ip, and the start of that code. Without rejitted code.
 * Same restriction as sw_function_name. */
sw_hresult sw_il_map(uint64_t function, uint64_t ip, uint64_t *begin, struct sw_il *map, uint32_t room, uint32_t *count)
{
	*count = 0;
	*begin = code_start(function, ip);
	if (*begin == 0)
		return E_NOTIMPL_;
	if (sw_info_version < 9)
		return SW_METHOD(sw_info, GET_IL_TO_NATIVE_MAPPING, sw_hresult (*)(void *, uint64_t, uint32_t, uint32_t *, struct sw_il *))(sw_info, function, room, count, map);
	return SW_METHOD(sw_info, GET_IL_TO_NATIVE_MAPPING3, sw_hresult (*)(void *, uint64_t, uint32_t, uint32_t *, struct sw_il *))(sw_info, *begin, room, count, map);
}

/* Major, minor, build, and patch numbers of the runtime. */
sw_hresult sw_runtime_version(int out[4])
{
	uint16_t clr, v[4] = {0}, text[64]; /* before .NET Core 3.0 the text must be requested too */
	uint32_t type, units = 0;
	memset(out, 0, 4 * sizeof *out);
	sw_hresult hr = SW_METHOD(sw_info, GET_RUNTIME_INFORMATION, sw_hresult (*)(void *, uint16_t *, uint32_t *, uint16_t *, uint16_t *, uint16_t *, uint16_t *, uint32_t, uint32_t *, uint16_t *))(sw_info, &clr, &type, &v[0], &v[1], &v[2], &v[3], 64, &units, text);
	for (int i = 0; i < 4; i++)
		out[i] = v[i];
	return hr;
}
