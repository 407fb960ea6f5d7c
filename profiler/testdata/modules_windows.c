/* What the profiler's list of modules says of images whose headers cannot be relied
 * on. Linked with loader_windows.c; run under Wine by profiler/e2e. */
#include "../host/platform.h"

#include <stdio.h>
#include <string.h>
#include <windows.h>

/* callback.c's; a name is as good as any. */
int sw_utf8(const uint16_t *in, uint32_t units, char *out, int room)
{
	int n = 0;
	for (; n < (int)units && n + 1 < room; n++)
		out[n] = (char)in[n];
	out[n] = 0;
	return n;
}

static struct sw_module modules[SW_MODULES];

static void report(const char *name, HMODULE image, uint32_t size, uint32_t stamp)
{
	int n = sw_modules(modules, SW_MODULES);
	for (int i = 0; i < n; i++) {
		const struct sw_module *m = &modules[i];
		if (m->base == (uint64_t)(uintptr_t)image) {
			printf("%s: size %s, stamp %s, name %s\n", name, m->size == size ? "right" : "wrong",
			       m->stamp == stamp ? "right" : "wrong", strrchr(m->path, '\\') + 1);
			fflush(stdout);
			return;
		}
	}
	printf("%s: not listed\n", name);
}

int main(void)
{
	DWORD old;
	if (sw_loader_init())
		return 1;
	HMODULE image = LoadLibraryA("version.dll");
	IMAGE_NT_HEADERS *nt = (IMAGE_NT_HEADERS *)((uint8_t *)image + ((IMAGE_DOS_HEADER *)image)->e_lfanew);
	uint32_t size = nt->OptionalHeader.SizeOfImage, stamp = nt->FileHeader.TimeDateStamp;
	report("as it is", image, size, stamp);
	VirtualProtect(image, 0x1000, PAGE_READWRITE, &old);
	nt->OptionalHeader.SizeOfImage = 0x7fffffff;
	report("a size that is not mapped", image, size, stamp);
	((IMAGE_DOS_HEADER *)image)->e_lfanew = 0x7ffffff0;
	report("headers that point nowhere", image, size, stamp);
	VirtualProtect(image, 0x1000, PAGE_NOACCESS, &old);
	report("headers that may not be read", image, size, stamp);
	TerminateProcess(GetCurrentProcess(), 0);
	return 0;
}
