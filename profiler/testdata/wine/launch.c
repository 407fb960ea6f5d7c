/* Starts a program with a DLL of ours in it, before its first instruction:
 *
 *     launch.exe DLL PROGRAM [ARGS]
 *
 * The exit code is the program's; 125 if it could not be started, 124 if it did
 * not end within SWHOST_LIMIT seconds. The program's number is written to the file
 * SWHOST_PID, if that is set. A test fixture: see shim.c.
 *
 * Source: Win32 CreateProcess (CREATE_SUSPENDED), CreateRemoteThread. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <windows.h>

static HANDLE process;

static void die(const char *what)
{
	fprintf(stderr, "launch: %s: Windows error %lu\n", what, GetLastError());
	if (process)
		TerminateProcess(process, 125);
	exit(125);
}

/* The command line from its third argument on, as it was given. */
static char *rest(char *line, int skip)
{
	for (; skip > 0; skip--) {
		int quoted = 0;
		for (; *line && (quoted || (*line != ' ' && *line != '\t')); line++)
			quoted ^= *line == '"';
		while (*line == ' ' || *line == '\t')
			line++;
	}
	return line;
}

/* kernel32.dll is where it is here in every process of the system. */
static void load(const char *dll)
{
	size_t n = strlen(dll) + 1;
	void *text = VirtualAllocEx(process, NULL, n, MEM_COMMIT | MEM_RESERVE, PAGE_READWRITE);
	if (!text || !WriteProcessMemory(process, text, dll, n, NULL))
		die("cannot write to the program");
	LPTHREAD_START_ROUTINE entry = (LPTHREAD_START_ROUTINE)(void *)GetProcAddress(GetModuleHandleA("kernel32.dll"), "LoadLibraryA");
	HANDLE thread = CreateRemoteThread(process, NULL, 0, entry, text, 0, NULL);
	DWORD loaded = 0; /* the low half of the module's address */
	if (!thread || WaitForSingleObject(thread, 20000) != WAIT_OBJECT_0 || !GetExitCodeThread(thread, &loaded) || !loaded)
		die("cannot load the DLL into the program");
	CloseHandle(thread);
}

/* In one piece: whoever waits for the file reads all of it. */
static void tell(DWORD pid)
{
	char name[MAX_PATH], part[MAX_PATH + 8];
	if (!GetEnvironmentVariableA("SWHOST_PID", name, sizeof name))
		return;
	snprintf(part, sizeof part, "%s.part", name);
	FILE *f = fopen(part, "w");
	if (!f || fprintf(f, "%lu", pid) < 0 || fclose(f) || !MoveFileA(part, name))
		die(name);
}

int main(int argc, char **argv)
{
	if (argc < 3) {
		fputs("usage: launch DLL PROGRAM [ARGS]\n", stderr);
		return 125;
	}
	char dll[MAX_PATH];
	if (!GetFullPathNameA(argv[1], sizeof dll, dll, NULL))
		die(argv[1]);
	STARTUPINFOA start = {.cb = sizeof start};
	PROCESS_INFORMATION made;
	if (!CreateProcessA(NULL, rest(GetCommandLineA(), 2), NULL, NULL, TRUE, CREATE_SUSPENDED, NULL, NULL, &start, &made))
		die(argv[2]);
	process = made.hProcess;
	load(dll);
	tell(made.dwProcessId);
	ResumeThread(made.hThread);
	const char *limit = getenv("SWHOST_LIMIT");
	DWORD ms = limit && atoi(limit) > 0 ? 1000u * (DWORD)atoi(limit) : INFINITE, code = 125;
	if (WaitForSingleObject(process, ms) != WAIT_OBJECT_0) {
		fputs("launch: it hangs\n", stderr);
		Sleep(5000); /* a test inspects the hang meanwhile */
		TerminateProcess(process, 124);
		return 124;
	}
	GetExitCodeProcess(process, &code);
	return (int)code;
}
