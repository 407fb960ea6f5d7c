/* What the client asks of Windows about this process. */
#include "client.h"

#include <stdio.h>
#include <tlhelp32.h>


uint32_t sw_process(void) { return GetCurrentProcessId(); }

void sw_pause(void) { Sleep(1); }

int sw_lives(uint32_t tid)
{
	HANDLE h = OpenThread(SYNCHRONIZE, FALSE, tid);
	int lives = h && WaitForSingleObject(h, 0) == WAIT_TIMEOUT;
	if (h)
		CloseHandle(h);
	return lives;
}

/* A snapshot lists the threads of all processes. So it is taken at most once a second. */
int32_t sw_live_threads(void)
{
	static int32_t count;
	static uint64_t counted;
	enum { EVERY = 1000000000 };
	THREADENTRY32 t = {.dwSize = sizeof t};
	uint64_t time = now();
	if (counted && time - counted < EVERY)
		return count;
	counted = time, count = 0;
	HANDLE h = CreateToolhelp32Snapshot(TH32CS_SNAPTHREAD, 0);
	if (h == INVALID_HANDLE_VALUE)
		return 0;
	for (BOOL more = Thread32First(h, &t); more; more = Thread32Next(h, &t))
		count += t.th32OwnerProcessID == GetCurrentProcessId();
	CloseHandle(h);
	return count;
}

static HMODULE library(DWORD flags)
{
	HMODULE m = 0;
	GetModuleHandleExW(GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS | flags, (LPCWSTR)(uintptr_t)library, &m);
	return m;
}

void sw_stay(void) { library(GET_MODULE_HANDLE_EX_FLAG_PIN); }

static int narrow(const wchar_t *from, char *to, size_t room)
{
	return WideCharToMultiByte(CP_UTF8, 0, from, -1, to, (int)room, 0, 0);
}

void sw_find(const char *configured, char *path, size_t room)
{
	enum { LONGEST = 1024 };
	wchar_t wide[LONGEST] = L"";
	if (configured && *configured) {
		snprintf(path, room, "%s", configured);
		return;
	}
	DWORD n = configured ? 0 : GetEnvironmentVariableW(L"SEEDWALK_ENGINE", wide, LONGEST);
	int fits = n < LONGEST && narrow(wide, path, room);
	if (n > 0 && fits)
		return;
	*path = 0; /* no file has this name: a name without a folder could be one in the current folder */
	if (n > 0)
		return;
	n = GetModuleFileNameW(library(GET_MODULE_HANDLE_EX_FLAG_UNCHANGED_REFCOUNT), wide, LONGEST);
	char *slash = n < LONGEST && narrow(wide, path, room) ? strrchr(path, '\\') : 0;
	size_t at = slash ? (size_t)(slash + 1 - path) : 0;
	snprintf(path + at, room - at, "%s", slash ? "seedwalk.exe" : "");
}

void sw_reason(int error, char *out, size_t room)
{
	if (error == ERROR_FILE_NOT_FOUND || error == ERROR_PATH_NOT_FOUND)
		snprintf(out, room, "there is no such file");
	else
		snprintf(out, room, "Windows error %d", error);
}

/* `seedwalk stack --copies` is for Linux, so a file of copies would be of no use. */
int sw_keep(const char *path, const char *why)
{
	char line[1400];
	(void)path;
	snprintf(line, sizeof line, "%s; copies cannot be kept in a file on Windows", why);
	sw_problem(line);
	return SEEDWALK_NO_ENGINE;
}
int sw_keep_copy(const struct sw_at *at, const struct kept *k) { return (void)at, (void)k, SEEDWALK_NOT_OPEN; }
uint64_t sw_keep_missed(void) { return 0; }
void sw_keep_end(void) {}
void sw_keep_forked(void) {}
