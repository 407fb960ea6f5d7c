// Records its own stack in the file of package capture. The stack has real compiled frames
// of known depth. The benchmarks of folder bench build and start this program.
//
//	Usage: deep FILE DEPTH (even, at least 8)
//	       deep FILE DEPTH libgcc
//
// With "libgcc", the program stays at the place that it recorded, and walks that stack with
// libgcc. libgcc caches nothing: each step searches the FDE and interprets it. The program
// reads requests from stdin. For "n N", it walks N times and prints the nanoseconds and the
// frames. For "f 1", it prints a hash and the number of the return addresses above record.
#define _GNU_SOURCE
#include <link.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>
#include <unwind.h>

static FILE *out;
static int stays;

// walked is what one walk by libgcc has seen.
struct walked {
	uint64_t hash, frames; // of all frames; the first two are those of serve and record
};

static _Unwind_Reason_Code count(struct _Unwind_Context *c, void *arg)
{
	((struct walked *)arg)->frames += _Unwind_GetIP(c) != 0; // behind the last it tells of one at 0
	return _URC_NO_REASON;
}

static _Unwind_Reason_Code hash(struct _Unwind_Context *c, void *arg)
{
	struct walked *w = arg;
	if (_Unwind_GetIP(c) != 0 && w->frames++ >= 2)
		w->hash = (w->hash ^ (uint64_t)_Unwind_GetIP(c)) * 0x100000001b3;
	return _URC_NO_REASON;
}

__attribute__((noinline)) static void serve(void)
{
	char line[64];
	while (fgets(line, sizeof line, stdin)) {
		struct walked w = { 0xcbf29ce484222325, 0 };
		struct timespec a, b;
		if (line[0] == 'f') {
			_Unwind_Backtrace(hash, &w);
			printf("%llu %llu\n", (unsigned long long)w.hash, (unsigned long long)w.frames - 2);
			fflush(stdout);
			continue;
		}
		clock_gettime(CLOCK_MONOTONIC, &a);
		for (long n = atol(line + 1); n > 0; n--) {
			_Unwind_Backtrace(count, &w);
			w.frames++; // its own, which it leaves first
		}
		clock_gettime(CLOCK_MONOTONIC, &b);
		printf("%lld %llu\n", (b.tv_sec - a.tv_sec) * 1000000000LL + b.tv_nsec - a.tv_nsec, (unsigned long long)w.frames);
		fflush(stdout);
	}
}

static void put(uint64_t v)
{
	fwrite(&v, 8, 1, out);
}

static int count_module(struct dl_phdr_info *i, size_t n, void *arg)
{
	(void)n;
	if (access(i->dlpi_name[0] ? i->dlpi_name : "/proc/self/exe", R_OK) == 0)
		++*(uint64_t *)arg;
	return 0;
}

static int put_module(struct dl_phdr_info *i, size_t n, void *arg)
{
	char path[4096];
	ssize_t len = 0;
	uint64_t lo = UINT64_MAX, hi = 0;
	(void)n, (void)arg;
	if (access(i->dlpi_name[0] ? i->dlpi_name : "/proc/self/exe", R_OK) != 0)
		return 0;
	if (i->dlpi_name[0])
		len = snprintf(path, sizeof path, "%s", i->dlpi_name);
	else
		len = readlink("/proc/self/exe", path, sizeof path);
	for (int k = 0; k < i->dlpi_phnum; k++) {
		const ElfW(Phdr) *p = &i->dlpi_phdr[k];
		if (p->p_type != PT_LOAD)
			continue;
		lo = p->p_vaddr < lo ? p->p_vaddr : lo;
		hi = p->p_vaddr + p->p_memsz > hi ? p->p_vaddr + p->p_memsz : hi;
	}
	put(i->dlpi_addr + lo);
	put(i->dlpi_addr + hi);
	put(i->dlpi_addr);
	put((uint64_t)len);
	fwrite(path, 1, (size_t)len, out);
	put(0); // no build id
	return 0;
}

static uint64_t stack_end(void)
{
	pthread_attr_t a;
	void *low;
	size_t size;
	if (pthread_getattr_np(pthread_self(), &a) || pthread_attr_getstack(&a, &low, &size))
		exit(2);
	return (uint64_t)(uintptr_t)low + size;
}

__attribute__((noinline)) static int record(void)
{
	static const int order[16] = { REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
				       REG_R8, REG_R9, REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15 };
	ucontext_t c;
	uint64_t sp, end = stack_end(), modules = 0;
	if (getcontext(&c))
		exit(2);
	sp = (uint64_t)c.uc_mcontext.gregs[REG_RSP];
	fwrite("SWSTACK1", 1, 8, out);
	put(1);
	dl_iterate_phdr(count_module, &modules);
	put(modules);
	dl_iterate_phdr(put_module, NULL);
	put(1);
	put(0);
	put(4096);
	put((uint64_t)c.uc_mcontext.gregs[REG_RIP]);
	for (int i = 0; i < 16; i++)
		put((uint64_t)c.uc_mcontext.gregs[order[i]]);
	put(1);
	put(sp);
	put(end - sp);
	fwrite((const void *)(uintptr_t)sp, 1, end - sp, out);
	if (fclose(out))
		return 2;
	if (stays)
		serve();
	return 0;
}

static int descend(int n);

// Four shapes of frame: no, one, three and all callee-saved registers.
#define SHAPE(name, room, ...)                                  \
	__attribute__((noinline)) static int name(int n)        \
	{                                                       \
		volatile char pad[room];                        \
		pad[0] = (char)n;                               \
		__asm__ volatile("" ::: "memory", __VA_ARGS__); \
		n = descend(n - 1);                             \
		__asm__ volatile("" ::: "memory", __VA_ARGS__); \
		return n + pad[0] * 0;                          \
	}
SHAPE(plain, 24, "rax")
SHAPE(one, 40, "rbx")
SHAPE(three, 8, "rbx", "r12", "r13")
SHAPE(all, 100, "rbx", "r12", "r13", "r14", "r15", "rbp")

__attribute__((noinline)) static int descend(int n)
{
	static int (*const next[])(int) = { plain, one, three, all };
	int r = n <= 0 ? record() : next[n & 3](n);
	__asm__ volatile("" ::: "memory");
	return r;
}

int main(int argc, char **argv)
{
	if (argc < 3 || argc > 4 || !(out = fopen(argv[1], "wb")))
		return 2;
	stays = argc == 4;
	// record, descend, main and three of the C library; two for each step.
	int r = descend((atoi(argv[2]) - 6) / 2);
	__asm__ volatile("" ::: "memory");
	return r;
}
