/* A profiler that has the CLR walk the thread that it calls: in callbacks, of its own
 * thread, DoStackSnapshot needs no suspension. What the CLR says goes with the thread's
 * registers through the socket that ASKS_SOCKET names, one thread after the other. The
 * thread stands where it is until a byte comes back, so that whoever reads finds the
 * stack that the CLR has walked.
 *
 * Sources: dotnet/runtime src/coreclr/inc/corprof.idl (slots, event mask);
 * pal/inc/pal.h (CONTEXT of ARM64). */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <ucontext.h>
#include <unistd.h>

#include "../../testdata/profiler.h"

enum { MOST = 8192 };
enum { ALLOCATION, EXCEPTION, CATCH, METHOD, CLASS, TO_MANAGED, TO_NATIVE, KINDS };

static struct object *info;

/* What is sent: this, then the frames, leaf first. */
static struct {
	uint64_t kind, tid, stack_base, result, count, regs[33];
	struct { uint64_t function, ip, sp, fp; } frames[MOST];
} said;
static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER;
static int reader = -1;

static hresult framed(uint64_t function, uint64_t ip, uint64_t frame_info, uint32_t size, const uint8_t *context, void *data)
{
	enum { FP = 0xf0, SP = 0x100 };
	(void)frame_info, (void)data;
	if (said.count == MOST)
		return 1;
	uint64_t sp = 0, fp = 0;
	if (size > SP) {
		memcpy(&sp, context + SP, sizeof sp);
		memcpy(&fp, context + FP, sizeof fp);
	}
	said.frames[said.count].function = function;
	said.frames[said.count].ip = ip;
	said.frames[said.count].sp = sp;
	said.frames[said.count++].fp = fp;
	return 0;
}

static uint64_t stack_base(void)
{
	static __thread uint64_t base;
	pthread_attr_t attributes;
	if (base == 0 && pthread_getattr_np(pthread_self(), &attributes) == 0) {
		void *low;
		size_t size;
		pthread_attr_getstack(&attributes, &low, &size);
		pthread_attr_destroy(&attributes);
		base = (uint64_t)low + size;
	}
	return base;
}

static int pass(const char *what, size_t left)
{
	while (left > 0) {
		ssize_t n = send(reader, what, left, MSG_NOSIGNAL);
		if (n <= 0)
			return 0;
		what += n;
		left -= (size_t)n;
	}
	return 1;
}

/* The registers are those of this function, which does not return before it is answered. */
static __attribute__((noinline)) void ask(uint64_t kind)
{
	enum { REGISTERS = 1, SNAPSHOT = 36 };
	ucontext_t here;
	char answer;
	getcontext(&here);
	said.kind = kind;
	said.tid = (uint64_t)gettid();
	said.stack_base = stack_base();
	memcpy(said.regs, here.uc_mcontext.regs, 31 * sizeof *said.regs);
	said.regs[31] = here.uc_mcontext.sp;
	said.regs[32] = here.uc_mcontext.pc;
	said.count = 0;
	said.result = (uint32_t)((hresult(*)(void *, uint64_t, void *, uint32_t, void *, void *, uint32_t))info->table[SNAPSHOT])(info, 0, (void *)framed, REGISTERS, NULL, NULL, 0);
	size_t size = (size_t)((char *)&said.frames[said.count] - (char *)&said);
	if (!pass((const char *)&said, size) || read(reader, &answer, 1) != 1)
		reader = -1;
}

/* What happens often is asked about seldom: a thread's first time of each kind, and
 * every so many times from there. */
static hresult asked(uint64_t kind)
{
	static const uint32_t each[KINDS] = {[ALLOCATION] = 61, [EXCEPTION] = 1, [CATCH] = 1, [METHOD] = 7, [CLASS] = 23, [TO_MANAGED] = 61, [TO_NATIVE] = 61};
	static __thread uint32_t times[KINDS];
	int patience = each[kind] == 1 ? 100 : 0; /* not for ever: a collection may wait for us */
	if (times[kind]++ % each[kind])
		return 0;
	while (pthread_mutex_trylock(&one)) {
		if (patience-- == 0)
			return 0;
		usleep(100);
	}
	if (reader >= 0)
		ask(kind);
	pthread_mutex_unlock(&one);
	return 0;
}

static hresult allocated(void) { return asked(ALLOCATION); }
static hresult thrown(void) { return asked(EXCEPTION); }
static hresult caught(void) { return asked(CATCH); }
static hresult compiled(void) { return asked(METHOD); }
static hresult class_loaded(void) { return asked(CLASS); }
static hresult to_managed(void) { return asked(TO_MANAGED); }
static hresult to_native(void) { return asked(TO_NATIVE); }

static hresult initialize(void *self, struct object *given)
{
	enum { CLASS_LOADS = 2, JIT = 0x20, EXCEPTIONS = 0x40, ALLOCATED = 0x800100, TRANSITIONS = 0x800, STACKS = 0x10000000, SET_MASK = 16 };
	const char *path = getenv("ASKS_SOCKET");
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	(void)self;
	info = given;
	reader = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	strncpy(to.sun_path, path ? path : "", sizeof to.sun_path - 1);
	if (connect(reader, (struct sockaddr *)&to, sizeof to))
		return (hresult)0x80004005;
	return ((hresult(*)(void *, uint32_t))info->table[SET_MASK])(info, CLASS_LOADS | JIT | EXCEPTIONS | ALLOCATED | TRANSITIONS | STACKS);
}

PROFILER({3, initialize}, {19, class_loaded}, {23, compiled}, {40, to_managed}, {41, to_native}, {50, allocated}, {54, thrown}, {66, caught})
