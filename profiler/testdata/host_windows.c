/* Starts a managed program on a .NET Core runtime of Windows that is a folder of
 * loose files:
 *
 *     swhost.exe RUNTIME_DIR APP [ARGS]
 *
 * The exit code is the program's; 125 if the runtime could not be started, 124 if
 * it did not end within SWHOST_LIMIT seconds (a test's way to a process that
 * hangs).
 * Source: dotnet/runtime src/coreclr/hosts/inc/coreclrhost.h. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <windows.h>

#include "wine/context.h"

typedef int (*initialize_fn)(const char *exe, const char *domain, int count, const char **keys, const char **values, void **host, unsigned *id);
typedef int (*execute_fn)(void *host, unsigned id, int argc, const char **argv, const char *app, unsigned *exit_code);
typedef int (*shutdown_fn)(void *host, unsigned id, int *exit_code);

static void die(const char *format, ...)
{
	va_list args;
	va_start(args, format);
	fputs("swhost: ", stderr);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
	va_end(args);
	exit(125);
}

static void *allocate(size_t n)
{
	void *p = calloc(1, n);
	if (!p)
		die("out of memory");
	return p;
}

enum { LIST_ROOM = 1 << 18 };

/* Every assembly of the runtime, joined by semicolons. */
static char *assemblies(const char *dir)
{
	char pattern[MAX_PATH + 8], *list = allocate(LIST_ROOM);
	size_t used = 0;
	WIN32_FIND_DATAA found;
	snprintf(pattern, sizeof pattern, "%s\\*.dll", dir);
	HANDLE h = FindFirstFileA(pattern, &found);
	if (h == INVALID_HANDLE_VALUE)
		die("cannot read %s", dir);
	do {
		int n = snprintf(list + used, LIST_ROOM - used, "%s\\%s;", dir, found.cFileName);
		if (n < 0 || (used += (size_t)n) >= LIST_ROOM)
			die("too many files in %s", dir);
	} while (FindNextFileA(h, &found));
	FindClose(h);
	return list;
}

static void *symbol(HMODULE lib, const char *name)
{
	void *p = (void *)GetProcAddress(lib, name);
	if (!p)
		die("coreclr.dll has no %s", name);
	return p;
}

enum { LOOK_SECONDS = 5 }; /* a test inspects the hang meanwhile */

/* Not by stdio: a thread that stands still may own its lock. */
static DWORD WINAPI limit(void *seconds)
{
	static const char text[] = "swhost: it hangs\n";
	DWORD written;
	Sleep(1000 * (DWORD)(uintptr_t)seconds);
	WriteFile(GetStdHandle(STD_ERROR_HANDLE), text, sizeof text - 1, &written, NULL);
	Sleep(1000 * LOOK_SECONDS);
	TerminateProcess(GetCurrentProcess(), 124);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc < 3)
		die("usage: swhost RUNTIME_DIR APP [ARGS]");
	const char *seconds = getenv("SWHOST_LIMIT");
	if (seconds && atoi(seconds) > 0)
		CreateThread(NULL, 0, limit, (void *)(uintptr_t)atoi(seconds), 0, NULL);
	char runtime[MAX_PATH], app[MAX_PATH], lib[MAX_PATH + 16];
	if (!GetFullPathNameA(argv[1], sizeof runtime, runtime, NULL) || !GetFullPathNameA(argv[2], sizeof app, app, NULL))
		die("no such file: %s or %s", argv[1], argv[2]);
	snprintf(lib, sizeof lib, "%s\\coreclr.dll", runtime);
	HMODULE clr = LoadLibraryExA(lib, NULL, LOAD_WITH_ALTERED_SEARCH_PATH);
	if (!clr)
		die("cannot load %s: Windows error %lu", lib, GetLastError());
	wine_patch(clr);
	char *app_dir = _strdup(app), *last = app_dir ? strrchr(app_dir, '\\') : NULL;
	if (!last)
		die("%s is no file in a folder", app);
	*last = 0;
	char *search = allocate(2 * MAX_PATH + 2);
	snprintf(search, 2 * MAX_PATH + 2, "%s;%s", app_dir, runtime);
	const char *keys[] = {"TRUSTED_PLATFORM_ASSEMBLIES", "APP_PATHS", "NATIVE_DLL_SEARCH_DIRECTORIES", "System.Globalization.Invariant"};
	const char *values[] = {assemblies(runtime), app_dir, search, "true"};
	void *host;
	unsigned domain, code = 0;
	int hr = ((initialize_fn)symbol(clr, "coreclr_initialize"))(argv[0], "seedwalk", 4, keys, values, &host, &domain);
	if (hr < 0)
		die("coreclr_initialize: %#x", (unsigned)hr);
	hr = ((execute_fn)symbol(clr, "coreclr_execute_assembly"))(host, domain, argc - 3, (const char **)argv + 3, app, &code);
	if (hr < 0)
		die("coreclr_execute_assembly %s: %#x", app, (unsigned)hr);
	int latched = 0;
	((shutdown_fn)symbol(clr, "coreclr_shutdown_2"))(host, domain, &latched);
	return latched ? latched : (int)code;
}
