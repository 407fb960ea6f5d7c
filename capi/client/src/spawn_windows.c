/* Starts the helper process, and shares a section with it. The helper inherits three handles: the section and
 * the ends of two pipes, which are its standard input and output. The program's other handles, its console,
 * and its environment do not reach it. The section has no name. A process that another thread of the program
 * starts at the same moment, with all handles inherited, gets these three too. */
#include "client.h"

#include <stdio.h>

struct sw_header *sw_shared;

/* All helpers use this section, one after the other: a thread may still be writing a copy when a helper ends. */
static HANDLE section;

/* The room behind the ring holds the longest record, so that no record wraps around. */
enum { SLACK = 1 << 20 };

uint64_t sw_current(void) { return sw_id_of(own_tid()); }

void sw_forked(void) {}

void sw_end(struct sw_header *h) { __atomic_store_n(&h->left, SW_LEFT, __ATOMIC_RELEASE); }

/* The last helper, from the request to end until it has ended. It may still use the section, or hold a thread
 * suspended. */
static HANDLE ending;

/* is_stopped reports whether a thread is suspended at each of several looks. The runtime suspends threads too,
 * but for moments only. */
static int is_stopped(HANDLE thread)
{
	enum { LOOKS = 32 };
	for (int i = 0; i < LOOKS; i++, Sleep(5)) {
		DWORD before = SuspendThread(thread);
		if (before == (DWORD)-1)
			return 0;
		ResumeThread(thread);
		if (!before)
			return 0;
	}
	return 1;
}

/* resume resumes the thread that the helper had suspended when it ended. The helper announces a suspension
 * before it begins, so it may have ended without one. Then a suspension is the runtime's: a collection reads
 * that thread's stack, and the program would crash if the thread ran. */
static void resume(struct sw_header *h)
{
	uint32_t tid = h ? __atomic_exchange_n(&h->suspended, 0, __ATOMIC_SEQ_CST) : 0;
	if (tid == GetCurrentThreadId()) /* it runs, and must not suspend itself */
		return;
	HANDLE thread = tid ? OpenThread(THREAD_SUSPEND_RESUME, FALSE, tid) : 0;
	if (thread && is_stopped(thread))
		ResumeThread(thread);
	if (thread)
		CloseHandle(thread);
}

/* last_ended waits for the end of the last helper, at most a second. It returns 0 if that helper still runs. */
static int last_ended(void)
{
	enum { LIMIT_MS = 1000 };
	if (!ending)
		return 1;
	if (WaitForSingleObject(ending, LIMIT_MS) != WAIT_OBJECT_0)
		return 0;
	resume(sw_shared);
	CloseHandle(ending);
	ending = 0;
	return 1;
}

/* prepare makes the section ready for a helper. It returns 0 if there is no memory, or if the last helper
 * still runs. Positions in the ring continue, because the ring still has the records of the last helper. */
static struct sw_header *prepare(void)
{
	struct sw_header *h = sw_shared;
	if (!last_ended()) {
		SetLastError(ERROR_BUSY);
		return 0;
	}
	if (!section)
		section = CreateFileMappingW(INVALID_HANDLE_VALUE, 0, PAGE_READWRITE, 0, SW_BEFORE_RING + SW_RING_SIZE + SLACK, 0);
	if (section && !h)
		h = MapViewOfFile(section, FILE_MAP_READ | FILE_MAP_WRITE, 0, 0, 0);
	if (!h)
		return 0;
	uint64_t head = h->head;
	memset(h, 0, sizeof *h);
	h->head = h->tail = head;
	h->magic = SW_MAGIC, h->version = SW_VERSION, h->arch = SW_ARCH;
	h->pid = sw_process();
	h->base = P(h);
	h->left = SW_LEFT; /* until the helper has started */
	h->heartbeat = now();
	return sw_shared = h;
}

/* pipe makes a pipe. The end numbered theirs can be inherited. */
static int pipe(HANDLE ends[2], int theirs)
{
	enum { ROOM = 1 << 18 };
	if (!CreatePipe(ends, ends + 1, 0, ROOM))
		return 0;
	return SetHandleInformation(ends[theirs], HANDLE_FLAG_INHERIT, HANDLE_FLAG_INHERIT);
}

/* command writes the helper's command line. */
static void command(wchar_t *out, size_t room, uint32_t rate, uint32_t flags)
{
	wchar_t raw[MAX_PATH]; /* a file for the tests */
	DWORD n = GetEnvironmentVariableW(L"SEEDWALK_RAW", raw, MAX_PATH);
	int written = n > 0 && n < MAX_PATH;
	_snwprintf(out, room, L"seedwalk engine --pid %u --millihertz %u --section %llu%ls%ls%ls%ls%ls", sw_process(), rate,
		   (unsigned long long)(uintptr_t)section, flags & SEEDWALK_CLIENT_NO_CPU ? L" --no-cpu" : L"",
		   flags & SEEDWALK_CLIENT_NO_WALL ? L" --no-wall" : L"", written ? L" --raw \"" : L"", written ? raw : L"", written ? L"\"" : L"");
	out[room - 1] = 0;
}

/* run starts the tool with three handles: its input, its output, and the section. */
static int run(const wchar_t *path, wchar_t *line, HANDLE *handles, HANDLE *process)
{
	wchar_t folder[MAX_PATH], environment[MAX_PATH + 16] = {0}; /* the helper's: the system's folder only */
	uint64_t list[64];
	SIZE_T size = sizeof list;
	STARTUPINFOEXW s = {.StartupInfo = {.cb = sizeof s, .dwFlags = STARTF_USESTDHANDLES, .hStdInput = handles[0], .hStdOutput = handles[1]},
			    .lpAttributeList = (LPPROC_THREAD_ATTRIBUTE_LIST)(void *)list};
	PROCESS_INFORMATION p;
	UINT n = GetSystemWindowsDirectoryW(folder, MAX_PATH);
	if (n == 0 || n >= MAX_PATH)
		return ERROR_PATH_NOT_FOUND;
	_snwprintf(environment, MAX_PATH + 14, L"SystemRoot=%ls", folder);
	if (!InitializeProcThreadAttributeList(s.lpAttributeList, 1, 0, &size))
		return (int)GetLastError();
	int ok = UpdateProcThreadAttribute(s.lpAttributeList, 0, PROC_THREAD_ATTRIBUTE_HANDLE_LIST, handles, 3 * sizeof *handles, 0, 0) &&
		CreateProcessW(path, line, 0, 0, TRUE, CREATE_NO_WINDOW | CREATE_UNICODE_ENVIRONMENT | EXTENDED_STARTUPINFO_PRESENT, environment,
			       folder, &s.StartupInfo, &p);
	int error = ok ? 0 : (int)GetLastError();
	DeleteProcThreadAttributeList(s.lpAttributeList);
	if (ok) {
		CloseHandle(p.hThread);
		*process = p.hProcess;
	}
	return error;
}

static void drop(HANDLE *h)
{
	if (*h)
		CloseHandle(*h);
	*h = 0;
}

int sw_spawn(const char *path, uint32_t rate, uint32_t flags, struct engine *out)
{
	wchar_t wide[1024], line[MAX_PATH + 200];
	HANDLE in[2] = {0, 0}, from[2] = {0, 0};
	int e;
	*out = (struct engine)NO_ENGINE;
	if (!*path)
		return ERROR_FILE_NOT_FOUND;
	if (!MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, path, -1, wide, 1024))
		return (int)GetLastError();
	if (!prepare() || !pipe(in, 0) || !pipe(from, 1) || !SetHandleInformation(section, HANDLE_FLAG_INHERIT, HANDLE_FLAG_INHERIT)) {
		e = (int)GetLastError();
	} else {
		command(line, sizeof line / sizeof *line, rate, flags);
		e = run(wide, line, (HANDLE[]){in[0], from[1], section}, &out->process);
		SetHandleInformation(section, HANDLE_FLAG_INHERIT, 0);
	}
	drop(&in[0]), drop(&from[1]);
	out->to = in[1], out->from = from[0];
	return e;
}

int sw_share(struct engine *e)
{
	(void)e;
	__atomic_store_n(&sw_shared->left, 0, __ATOMIC_RELEASE);
	return 0;
}

/* The helper's end closes the pipe, unless another process has inherited the other end: one that a thread of
 * the program started at the same moment. */
long sw_receive(struct engine *e, void *to, size_t room)
{
	DWORD n = 0;
	int ended = WaitForSingleObject(e->process, 0) == WAIT_OBJECT_0;
	if (!PeekNamedPipe(e->from, 0, 0, 0, &n, 0))
		return 0;
	if (!n)
		return ended ? 0 : NOT_YET;
	return ReadFile(e->from, to, n < room ? n : (DWORD)room, &n, 0) ? (long)n : 0;
}

void sw_finish(struct engine *e) { drop(&e->to); }

void sw_look(struct engine *e)
{
	if (e->process && WaitForSingleObject(e->process, 0) == WAIT_OBJECT_0)
		resume(sw_shared);
}

void sw_release(struct engine *e)
{
	drop(&e->to), drop(&e->from);
	if (e->process) {
		TerminateProcess(e->process, 1);
		ending = e->process;
		e->process = 0;
	}
	last_ended();
}
