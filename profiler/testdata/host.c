/* Starts a managed program on a .NET runtime that is a folder of loose files:
 *
 *     swhost RUNTIME_DIR APP [ARGS]
 *
 * The exit code is the program's; 125 if the runtime could not be started.
 * Source: dotnet/runtime src/coreclr/hosts/inc/coreclrhost.h. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

static int ends(const char *s, const char *tail)
{
	size_t n = strlen(s), t = strlen(tail);
	return n > t && strcmp(s + n - t, tail) == 0;
}

/* Every assembly of the runtime, joined by colons. */
static char *assemblies(const char *dir)
{
	DIR *d = opendir(dir);
	if (!d)
		die("cannot read %s", dir);
	char *list = NULL;
	size_t size;
	FILE *out = open_memstream(&list, &size);
	for (struct dirent *e; (e = readdir(d));)
		if (ends(e->d_name, ".dll"))
			fprintf(out, "%s%s/%s", ftell(out) ? ":" : "", dir, e->d_name);
	fclose(out);
	closedir(d);
	return list;
}

static void *symbol(void *lib, const char *name)
{
	void *p = dlsym(lib, name);
	if (!p)
		die("libcoreclr.so has no %s", name);
	return p;
}

int main(int argc, char **argv)
{
	if (argc < 3)
		die("usage: swhost RUNTIME_DIR APP [ARGS]");
	char runtime[PATH_MAX], app[PATH_MAX], lib[PATH_MAX + 32];
	if (!realpath(argv[1], runtime))
		die("no such folder: %s", argv[1]);
	if (!realpath(argv[2], app))
		die("no such file: %s", argv[2]);
	snprintf(lib, sizeof lib, "%s/libcoreclr.so", runtime);
	void *clr = dlopen(lib, RTLD_NOW | RTLD_LOCAL);
	if (!clr)
		die("%s", dlerror());
	char *app_dir = strdup(app);
	*strrchr(app_dir, '/') = 0;
	char *search = NULL;
	if (asprintf(&search, "%s:%s", app_dir, runtime) < 0)
		die("out of memory");
	const char *keys[] = {"TRUSTED_PLATFORM_ASSEMBLIES", "APP_PATHS", "NATIVE_DLL_SEARCH_DIRECTORIES", "System.Globalization.Invariant"};
	const char *values[] = {assemblies(runtime), app_dir, search, "true"};
	void *host;
	unsigned domain, code = 0;
	int hr = ((initialize_fn)symbol(clr, "coreclr_initialize"))(argv[0], "seedwalk", 4, keys, values, &host, &domain);
	if (hr < 0)
		die("coreclr_initialize: %#x", hr);
	hr = ((execute_fn)symbol(clr, "coreclr_execute_assembly"))(host, domain, argc - 3, (const char **)argv + 3, app, &code);
	if (hr < 0)
		die("coreclr_execute_assembly %s: %#x", app, hr);
	int latched = 0;
	((shutdown_fn)symbol(clr, "coreclr_shutdown_2"))(host, domain, &latched);
	return latched ? latched : (int)code;
}
