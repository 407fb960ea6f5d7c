/* What the threads of Torture.exe do in native code: each call takes one of the
 * process's locks again and again, for as long as it is told, and checks what the
 * lock protects. A negative answer says that the work came out wrong. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <windows.h>

#define EXPORT __declspec(dllexport)

static int expired(ULONGLONG end) { return GetTickCount64() >= end; }

/* Larger than what a heap serves from places of a thread's own, without its lock. */
enum { LARGE = 70000, BLOCKS = 8 };

/* The process heap and the C library's. Returns how many blocks were allocated. */
EXPORT int torture_heap(int ms, unsigned char mark)
{
	ULONGLONG end = GetTickCount64() + (unsigned)ms;
	HANDLE heap = GetProcessHeap();
	unsigned char *blocks[BLOCKS] = {0};
	int n = 0;
	do {
		int i = n % BLOCKS;
		if (blocks[i] && (blocks[i][0] != mark || blocks[i][LARGE - 1] != mark))
			return -1;
		HeapFree(heap, 0, blocks[i]);
		blocks[i] = HeapAlloc(heap, 0, LARGE);
		unsigned char *other = malloc(LARGE / 2);
		if (!blocks[i] || !other)
			return -2;
		blocks[i][0] = blocks[i][LARGE - 1] = other[0] = mark;
		free(other);
		if (!HeapValidate(heap, 0, blocks[i]))
			return -3;
		n++;
	} while (!expired(end));
	for (int i = 0; i < BLOCKS; i++)
		HeapFree(heap, 0, blocks[i]);
	return n;
}

/* Loads and unloads a library, and asks for what is loaded. */
EXPORT int torture_loader(int ms, const char *library, const char *function)
{
	ULONGLONG end = GetTickCount64() + (unsigned)ms;
	void *sleep = (void *)GetProcAddress(GetModuleHandleA("kernel32.dll"), "Sleep");
	int n = 0;
	do {
		HMODULE h = LoadLibraryA(library);
		if (!h || !GetProcAddress(h, function) || !FreeLibrary(h))
			return -1;
		for (int i = 0; i < 20; i++)
			if ((void *)GetProcAddress(GetModuleHandleA("kernel32.dll"), "Sleep") != sleep)
				return -2;
		n++;
	} while (!expired(end));
	return n;
}

/* Writes a variable of the thread's own and reads it back. */
EXPORT int torture_environment(int ms, const char *name)
{
	ULONGLONG end = GetTickCount64() + (unsigned)ms;
	char want[32], got[32];
	int n = 0;
	do {
		snprintf(want, sizeof want, "%d", n);
		if (!SetEnvironmentVariableA(name, want) || !GetEnvironmentVariableA(name, got, sizeof got))
			return -1;
		if (strcmp(got, want) != 0)
			return -2;
		n++;
	} while (!expired(end));
	return n;
}

/* A function made at run time: int f(int (*g)(int), int n) { return g(n) + 1; } */
static const uint8_t made_code[] = {
	0x48, 0x83, 0xec, 0x28, /* sub rsp,28h */
	0x48, 0x89, 0xc8,       /* mov rax,rcx */
	0x89, 0xd1,             /* mov ecx,edx */
	0xff, 0xd0,             /* call rax */
	0x83, 0xc0, 0x01,       /* add eax,1 */
	0x48, 0x83, 0xc4, 0x28, /* add rsp,28h */
	0xc3,                   /* ret */
};
/* Version 1, a prolog of 4 bytes, one code: at 4, UWOP_ALLOC_SMALL of 28h. */
static const uint8_t made_unwind[] = {1, 4, 1, 0, 4, 0x42, 0, 0};

/* With its entry and its unwind data behind it. */
struct made {
	uint8_t code[32];
	uint8_t unwind[sizeof made_unwind];
	RUNTIME_FUNCTION entry;
};
enum { MADE = 32 };

static volatile int sink;

static int count(int n)
{
	for (int i = 0; i < n; i++)
		sink = i;
	return n;
}

static void make(struct made *m, void *base)
{
	DWORD at = (DWORD)((uint8_t *)m - (uint8_t *)base);
	memcpy(m->code, made_code, sizeof made_code);
	memcpy(m->unwind, made_unwind, sizeof made_unwind);
	m->entry.BeginAddress = at;
	m->entry.EndAddress = at + sizeof made_code;
	m->entry.UnwindData = at + offsetof(struct made, unwind);
}

/* Registers functions, calls them, and takes them back, as code generators do
 * whose code comes and goes. */
EXPORT int torture_tables(int ms)
{
	ULONGLONG end = GetTickCount64() + (unsigned)ms;
	struct made *m = VirtualAlloc(NULL, MADE * sizeof *m, MEM_RESERVE | MEM_COMMIT, PAGE_EXECUTE_READWRITE);
	int n = 0, wrong = m ? 0 : -1;
	for (int i = 0; m && i < MADE; i++)
		make(&m[i], m);
	while (!wrong && !expired(end)) {
		for (int i = 0; i < MADE; i++)
			if (!RtlAddFunctionTable(&m[i].entry, 1, (DWORD64)(uintptr_t)m))
				wrong = -2;
		int (*f)(int (*)(int), int) = (void *)m[n / MADE % MADE].code;
		if (f(count, 100) != 101)
			wrong = -3;
		for (int i = 0; i < MADE; i++, n++)
			if (!RtlDeleteFunctionTable(&m[i].entry))
				wrong = -4;
	}
	if (m)
		VirtualFree(m, 0, MEM_RELEASE);
	return wrong ? wrong : n;
}
