/* Restores the process as it was before Go started, when the first handle is opened. The build does not
 * notice a change of the included file: touch this one too. */
#include "../profiler/guard_windows.h"

#include "types.h"

void sw_guard_restore(void) { sw_guard_put_back(); }

/* The CLR unloads a profiler whose Initialize fails, and its library with it. Go's threads run on, so the
 * code must stay. */
__attribute__((constructor(102))) static void pin(void)
{
	HMODULE self;
	GetModuleHandleExA(GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS | GET_MODULE_HANDLE_EX_FLAG_PIN, (const char *)pin, &self);
}
