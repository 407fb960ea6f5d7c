/* A program in place of the CLR: it loads the probe as the CLR does, gives it a profiling
 * interface, and delivers events. It prints a line for each thing that it sees. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

typedef int32_t hresult;
enum { SLOTS = 128 };
static void *table[SLOTS];
static struct { void **table; } info = {table};
static int starter, stopper, added, detached;
static int runtime_provider, other_provider;

static hresult unexpected(void) { added++; return (hresult)0x80004001; }
static hresult query(void *self, const void *iid, void **out) { (void)iid; *out = self; return 0; }
static hresult current(void *self, uint64_t *id) { (void)self; *id = 0; return 0; }
static hresult mask(void *self, uint32_t low, uint32_t high) { (void)self; printf("mask %x %x\n", low, high); return 0; }
static hresult detach(void *self, uint32_t ms) { (void)self, (void)ms; detached++; return 0; }
static hresult stop(void *self, uint64_t session) { (void)self; stopper = gettid(); return session == 7 ? 0 : -1; }

struct config { const uint16_t *name; uint64_t keywords; uint32_t level, pad; const void *filter; };

static hresult start(void *self, uint32_t n, const struct config *c, int rundown, uint64_t *session)
{
	(void)self;
	starter = gettid();
	printf("start %u %llx %u %d\n", n, (unsigned long long)c->keywords, c->level, rundown);
	*session = 7;
	return 0;
}

static hresult provider(void *self, void *which, uint32_t room, uint32_t *n, uint16_t *name)
{
	const char *text = which == &runtime_provider ? "Microsoft-Windows-DotNETRuntime" : "Microsoft-Windows-DotNETRuntimeRundown";
	uint32_t i = 0;
	(void)self;
	for (; text[i] && i + 1 < room; i++)
		name[i] = (uint16_t)text[i];
	name[i] = 0;
	*n = i + 1;
	return 0;
}

static struct { void **table; } *profiler;

static void deliver(void *from, uint32_t id, const void *payload, uint32_t size)
{
	typedef hresult (*delivered)(void *, void *, uint32_t, uint32_t, uint32_t, const void *, uint32_t, const void *, void *, void *, uint64_t, uint32_t, void *);
	((delivered)profiler->table[95])(profiler, from, id, 0, 0, "", size, payload, 0, 0, 0, 0, 0);
}

static void pause_ms(long ms)
{
	struct timespec t = {0, ms * 1000000};
	nanosleep(&t, 0);
}

static const uint8_t wait_start[11] = {1, 9};
static const uint8_t lock_start[27] = {0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 6, 0, 0, 0, 0, 0, 0, 0, 77};
static const uint8_t big[4000];
/* AllocationTick of 1000 bytes, type 0x55, "AB"; AllocationSampled of an object of 5000 bytes, type 0x66, "C". */
static const uint8_t tick[48] = {[10] = 0xe8, 3, [18] = 0x55, [26] = 'A', 0, 'B'};
static const uint8_t sampled[34] = {[6] = 0x66, [14] = 'C', [26] = 0x88, 0x13};

static void events(void *from)
{
	deliver(from, 301, wait_start, sizeof wait_start);
	pause_ms(300);
	deliver(from, 302, "\0", 2);
	deliver(from, 301, wait_start, sizeof wait_start); /* a brief one */
	deliver(from, 302, "\0", 2);
	deliver(from, 81, lock_start, sizeof lock_start); /* a lock, and the wait that it is */
	deliver(from, 301, wait_start, sizeof wait_start);
	pause_ms(300);
	deliver(from, 302, "\0", 2);
	deliver(from, 91, wait_start, 11);
	deliver(from, 302, "\0", 2); /* it had begun before */
	deliver(from, 10, big, sizeof big);
	deliver(from, 80, "x\0\0\0y\0\0", 8);
	deliver(from, 4711, big, 0);
}

/* Nothing but what reads a clock and a stack: whoever asks for more is killed. */
static int confine(void)
{
	static const int may[] = {SYS_gettid, SYS_getpid, SYS_clock_gettime, SYS_arch_prctl, SYS_process_vm_readv, SYS_exit};
	enum { N = sizeof may / sizeof *may };
	struct sock_filter f[2 * N + 2] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))};
	for (int i = 0; i < N; i++) {
		f[1 + 2 * i] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)may[i], 0, 1);
		f[2 + 2 * i] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	}
	f[1 + 2 * N] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
	struct sock_fprog p = {2 * N + 2, f};
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &p);
}

static volatile int done; /* 1 = all delivered, 2 = there are no filters here */

static void *confined(void *unused)
{
	(void)unused;
	int without = confine();
	for (int i = 0; i < 2000 && !without; i++) {
		deliver(&runtime_provider, 81, lock_start, sizeof lock_start);
		deliver(&runtime_provider, 91, wait_start, 11);
		deliver(&runtime_provider, 10, tick, sizeof tick);
		deliver(&runtime_provider, 303, sampled, sizeof sampled);
		deliver(&runtime_provider, 303, sampled, 20); /* cut */
		deliver(&runtime_provider, 80, "x\0\0\0y\0\0", 8);
	}
	__atomic_store_n(&done, 1 + without, __ATOMIC_RELEASE);
	if (!without)
		syscall(SYS_exit, 0);
	return 0;
}

int main(int argc, char **argv)
{
	void *lib = dlopen(argv[argc - 1], RTLD_NOW | RTLD_LOCAL), **factory;
	hresult (*get)(const void *, const void *, void **) = lib ? (hresult(*)(const void *, const void *, void **))dlsym(lib, "DllGetClassObject") : 0;
	pthread_t id;
	setvbuf(stdout, 0, _IOLBF, 0);
	for (int i = 0; i < SLOTS; i++)
		table[i] = (void *)unexpected;
	table[0] = (void *)query, table[13] = (void *)current, table[58] = (void *)detach, table[82] = (void *)mask;
	table[101] = (void *)start, table[103] = (void *)stop, table[105] = (void *)provider;
	if (!get || get("", "", (void **)&factory))
		return 10;
	if (((hresult(*)(void *, void *, const void *, void **))(*(void ***)factory)[3])(factory, 0, "", (void **)&profiler))
		return 11;
	printf("initialize %x\n", (uint32_t)((hresult(*)(void *, void *))profiler->table[3])(profiler, &info));
	printf("started by the caller %d\n", starter == gettid());
	events(&other_provider);
	events(&runtime_provider);
	pthread_create(&id, 0, confined, 0);
	while (!__atomic_load_n(&done, __ATOMIC_ACQUIRE))
		pause_ms(1);
	deliver(&runtime_provider, 301, wait_start, sizeof wait_start); /* and stays open */
	printf("delivered %d\n", done);
	getchar();
	struct timespec begin, end;
	clock_gettime(CLOCK_MONOTONIC, &begin);
	((hresult(*)(void *))profiler->table[4])(profiler); /* Shutdown */
	clock_gettime(CLOCK_MONOTONIC, &end);
	printf("shut down %s\n", end.tv_sec * 1000 + end.tv_nsec / 1000000 < begin.tv_sec * 1000 + begin.tv_nsec / 1000000 + 500 ? "at once" : "late");
	for (int i = 0; i < 5000 && !detached; i++)
		pause_ms(1);
	printf("stopped by another %d, detached %d, else %d\n", stopper != 0 && stopper != gettid() && stopper != starter, detached, added);
	return 0;
}
