/* A program that is read: it loads the probe as the CLR does, says where its memory is,
 * and does what a line of its input says. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { PAGE = 4096, LARGE = 3 << 20 };
static volatile pid_t filtered;

static void pause_ms(long ms)
{
	struct timespec t = {0, ms * 1000000};
	nanosleep(&t, 0);
}

/* filter has the kernel kill the process if the calling thread reads memory by the call
 * that is for it. */
static int filter(void)
{
	struct sock_filter f[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog p = {sizeof f / sizeof *f, f};
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &p);
}

static void *other(void *unused)
{
	int without = filter();
	filtered = without ? -1 : gettid();
	for (;;)
		pause_ms(100);
	return unused;
}

int main(int argc, char **argv)
{
	void *lib = dlopen(argv[argc - 1], RTLD_NOW | RTLD_LOCAL), **factory;
	int32_t (*get)(const void *, const void *, void **) = lib ? (int32_t (*)(const void *, const void *, void **))dlsym(lib, "DllGetClassObject") : 0;
	struct { void **table; } *profiler;
	char *page = mmap(0, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	unsigned char *large = mmap(0, LARGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char line[16];
	sigset_t all;
	pthread_t id;
	sigfillset(&all);
	setvbuf(stdout, 0, _IOLBF, 0);
	for (int i = 0; i < PAGE; i++)
		page[i] = (char)(i * 7 + i / 256), page[2 * PAGE + i] = 'z';
	for (int i = 0; i < LARGE; i++)
		large[i] = (unsigned char)(i % 251);
	mprotect(page + PAGE, PAGE, PROT_NONE);
	if (!get || get("", "", (void **)&factory))
		return 10;
	if (((int32_t (*)(void *, void *, const void *, void **))(*(void ***)factory)[3])(factory, 0, "", (void **)&profiler))
		return 11;
	((int32_t (*)(void *, void *))profiler->table[3])(profiler, 0);
	pthread_create(&id, 0, other, 0);
	while (!filtered)
		pause_ms(1);
	printf("%lx %lx %d\n", (unsigned long)page, (unsigned long)large, (int)filtered);
	for (;;) {
		ssize_t n = read(0, line, 2);
		if (n < 0 && errno == EINTR)
			continue;
		if (n != 2)
			return 0;
		switch (line[0]) {
		case 'b':
			pthread_sigmask(SIG_BLOCK, &all, 0);
			break;
		case 'u':
			pthread_sigmask(SIG_UNBLOCK, &all, 0);
			break;
		case 'c':
			page[0]++;
			break;
		}
		printf("%c\n", line[0]);
	}
}
