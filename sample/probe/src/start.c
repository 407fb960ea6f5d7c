/* Sets a recording up, hands the file to the tool, and restores the process. */
#include "local.h"
#include "read.h"

__asm__(".text\n.globl sw_restorer\n.hidden sw_restorer\n.type sw_restorer,%function\n"
	"sw_restorer:\n\t" RESTORER);

/* Compilers call memset for large initializers. */
void *memset(void *to, int c, size_t n)
{
	for (size_t i = 0; i < n; i++)
		((char *)to)[i] = (char)c;
	return to;
}

/* Nanoseconds without a heartbeat after which the tool counts as dead. It sends ten a second. A tool that was
 * only late creates its timers again. */
enum { STALE = 500000000 };

/* The real-time signal that an earlier recording may have sent. It is ignored between recordings,
 * because one may still be pending, and its default action ends the process. */
static int parked;

/* map creates and maps the memory file. The ring is mapped twice; the room for reads behind it has no pages
 * until it is used. The file of another recording replaces the previous mapping, because a late handler may
 * still read there. If the kernel refuses memfd_create, the file is a nameless one in /dev/shm. All its space is
 * reserved there: a write into a full one would raise SIGBUS. The caller closes the file. */
static struct sw_header *map(int *fd, struct sw_header *before)
{
	static const char name[] = "seedwalk-probe";
	const long once = SW_BEFORE_RING + SW_RING_SIZE, rooms = SW_READS * SW_READ_ROOM, all = once + SW_RING_SIZE + rooms;
	enum { NONE = 0, RW = 3, SHARED = 1, PRIVATE = 2, FIXED = 0x10, ANON = 0x20, POPULATE = 0x8000 };
	*fd = (int)sys3(NR_memfd_create, P(name), 1 /* MFD_CLOEXEC */, 0);
	if (*fd < 0) {
		*fd = (int)open_file("/dev/shm", O_TMPFILE | 02000002 /* O_CLOEXEC, O_RDWR */);
		if (sys6(NR_fallocate, *fd, 0, 0, once + rooms, 0, 0))
			return 0;
	}
	if (sys3(NR_ftruncate, *fd, once + rooms, 0))
		return 0;
	long base = before ? P(before) : sys6(NR_mmap, 0, all, NONE, PRIVATE | ANON, -1, 0);
	if (base < 0 && base > -4096)
		return 0;
	long a = sys6(NR_mmap, base, once, RW, SHARED | FIXED | POPULATE, *fd, 0);
	long b = sys6(NR_mmap, base + once, SW_RING_SIZE, RW, SHARED | FIXED | POPULATE, *fd, once - SW_RING_SIZE);
	long c = sys6(NR_mmap, base + once + SW_RING_SIZE, rooms, RW, SHARED | FIXED, *fd, once);
	if (a != base || b != base + once || c != base + once + SW_RING_SIZE) {
		if (!before)
			sys3(NR_munmap, base, all, 0);
		return 0;
	}
	return (struct sw_header *)base;
}

static int is(int sig, uint64_t handler)
{
	struct action a;
	return sigaction_raw(sig, 0, &a) == 0 && a.handler == handler;
}

static int is_free(int sig) { return is(sig, SIG_DFL); }

static int take(int sig)
{
	struct action a = {(uint64_t)sw_handler, SA_SIGINFO | SA_RESTART | SA_ONSTACK | SA_RESTORER, (uint64_t)sw_restorer, ~0ull};
	return sigaction_raw(sig, &a, 0) == 0 ? sig : 0;
}

/* guard adds our signals to the masks of the installed handlers, or removes them: an alternate stack of
 * 16 KiB has no room for two handlers. What a handler blocks stays blocked if it never returns (relay.c), so
 * handlers on the thread's own stack are left alone. */
static void guard(struct sw_header *h, int add)
{
	uint64_t ours = sw_signals(h);
	uint64_t done = (uint64_t)h->masked_high << 32 | h->masked_low;
	for (int sig = 1; sig <= SIG_LAST; sig++) {
		struct action a;
		uint64_t bit = 1ull << (sig - 1);
		if (sig == SIGKILL || sig == SIGSTOP || bit & ours || (!add && !(done & bit)) || sigaction_raw(sig, 0, &a))
			continue;
		if (a.handler == SIG_DFL || a.handler == SIG_IGN || (add && bit & sw_faults() && !(a.flags & SA_ONSTACK)) || (add && (a.mask & ours) == ours))
			continue;
		a.mask = add ? a.mask | ours : a.mask & ~ours;
		if (sigaction_raw(sig, &a, 0) == 0)
			done |= bit;
	}
	h->masked_low = add ? (uint32_t)done : 0;
	h->masked_high = add ? (uint32_t)(done >> 32) : 0;
}

/* give sets the action of a signal of ours, unless the program has installed a handler of its own since. */
static void give(uint32_t sig, const struct action *a)
{
	if (sig && is((int)sig, (uint64_t)sw_handler))
		sigaction_raw((int)sig, a, 0);
}

/* sw_put_back restores the process. A real-time signal that was ever sent, or that timers use, stays ignored:
 * a pending one would end the process by its default action. */
void sw_put_back(struct sw_header *h)
{
	struct action a = {SIG_DFL, SA_RESTORER, (uint64_t)sw_restorer, 0};
	guard(h, 0);
	sw_unrelay(h);
	give(h->legacy, &a);
	if (__atomic_load_n(&h->real_sent, __ATOMIC_SEQ_CST) || h->timer_signal == h->real_time)
		parked = (int)h->real_time;
	if (parked == (int)h->real_time)
		a.handler = SIG_IGN;
	give(h->real_time, &a);
	__atomic_store_n(&h->left, SW_LEFT, __ATOMIC_RELEASE);
}

/* main_stack returns where the first thread's stack begins: field 28 of /proc/self/stat. */
static uint64_t main_stack(void)
{
	char buf[1024];
	long fd = open_file("/proc/self/stat", 02000000), n = fd < 0 ? -1 : sys3(NR_read, fd, P(buf), sizeof buf - 1), i;
	uint64_t value = 0;
	if (fd >= 0)
		sys3(NR_close, fd, 0, 0);
	for (i = n - 1; i >= 0 && buf[i] != ')'; i--) /* a process name may contain any character */
		;
	for (int field = 2; i >= 0 && i < n; i++) {
		if (buf[i] == ' ')
			field++;
		else if (field == 28)
			value = value * 10 + (uint64_t)(buf[i] - '0');
	}
	return value ? value + 64 : 0; /* the entry point's frame is there */
}

/* dial connects to the tool's socket. Reads from it wait two seconds at most. */
static long dial(const char *path)
{
	struct { uint16_t family; char path[108]; } to = {1 /* AF_UNIX */, {0}};
	for (int i = 0; (to.path[i] = path[i]); i++)
		if (i == (int)sizeof to.path - 2)
			return -1;
	int64_t limit[2] = {2, 0};
	long s = sys3(NR_socket, 1, 1 | 02000000 /* SOCK_STREAM, CLOEXEC */, 0);
	sys6(NR_setsockopt, s, 1, 20 /* SO_RCVTIMEO */, P(limit), sizeof limit, 0);
	if (s >= 0 && sys3(NR_connect, s, P(&to), sizeof to)) {
		sys3(NR_close, s, 0, 0);
		return -1;
	}
	return s;
}

/* greet sends the greeting, with a file if fd is not negative. */
static int greet(long s, int fd)
{
	struct { uint64_t size; int32_t level, type, fd, pad; } control = {20, 1 /* SOL_SOCKET */, 1 /* SCM_RIGHTS */, fd, 0};
	uint64_t greeting = SW_MAGIC;
	struct vec body = {(uint64_t)&greeting, 8};
	struct { uint64_t name; uint32_t name_size, pad; uint64_t vec, vecs, control, control_size, flags; } message = {
		0, 0, 0, (uint64_t)&body, 1, fd < 0 ? 0 : (uint64_t)&control, fd < 0 ? 0 : 24, 0};
	return sys3(NR_sendmsg, s, P(&message), 0x4000 /* MSG_NOSIGNAL */) == 8 ? 0 : -1;
}

/* heed waits until the tool has opened the file and written its requests. It then closes the connection. */
static void heed(long s)
{
	char c;
	sys3(NR_read, s, P(&c), 1);
}

/* sw_ask_tool asks the tool whether it can sample this runtime from outside. The answer is empty, or the path
 * of a library to load instead. The wait for it is bounded. */
int sw_ask_tool(const char *socket, char *instead, int room)
{
	int n = 0;
	long s = dial(socket), got;
	if (s < 0)
		return 0;
	if (greet(s, -1) == 0)
		while (n < room - 1 && (got = sys3(NR_read, s, P(instead + n), room - 1 - n)) > 0)
			n += (int)got;
	sys3(NR_close, s, 0, 0);
	instead[n] = 0;
	return n > 0 && instead[0] == '/';
}

/* take_signals takes two unused signals, and puts the relay before the runtime's own. */
static void take_signals(struct sw_header *h)
{
	if (is_free(SIGURG))
		h->legacy = (uint32_t)take(SIGURG);
	if (parked && is(parked, SIG_IGN))
		h->real_time = (uint32_t)take(parked);
	for (int sig = SIG_LAST; sig > SIG_REALTIME + 1 && !h->real_time; sig--)
		if (is_free(sig))
			h->real_time = (uint32_t)take(sig);
	h->timer_signal = h->legacy ? h->legacy : h->real_time;
	sw_relay(h);
	guard(h, 1);
}

/* sw_describe fills in the header of a new file. */
void sw_describe(struct sw_header *h)
{
	h->magic = SW_MAGIC;
	h->version = SW_VERSION;
	h->arch = SW_ARCH;
	h->pid = (uint32_t)sys3(NR_getpid, 0, 0, 0);
	h->base = (uint64_t)h;
	sys3(NR_getrandom, P(&h->tag), sizeof h->tag, 1);
	h->tag |= 0x80000000u;
	h->stale = STALE;
	h->heartbeat = now();
	h->hold = 1;
	h->main_stack = main_stack();
}

/* prepare creates the file and takes the signals. It returns 0 if it cannot. */
static struct sw_header *prepare(int *fd)
{
	struct sw_header *h = sw_shared;
	if (h && !h->left && sw_tool_lives(h, h->stale))
		return 0; /* another tool records this process */
	if (sw_silence(h))
		return 0; /* the session of the last recording is ending */
	if (h)
		sw_end(h);
	if (!sw_wait_out())
		return 0;
	h = map(fd, h);
	if (!h)
		return 0;
	sw_describe(h);
	sw_shared = h;
	take_signals(h);
	return h;
}

/* hand_over sends the file to the tool, and permits it to read this process. */
static int hand_over(long s, int fd, int pid, int waits)
{
	if (pid > 0)
		sys3(NR_prctl, 0x59616d61 /* PR_SET_PTRACER */, pid, 0);
	int e = greet(s, fd);
	if (!e && waits)
		heed(s);
	return e;
}

/* begun ends a recording that the tool cannot use. It returns -1 without a file, -2 if the tool did not take it. */
static int begun(struct sw_header *h, int fd, int e)
{
	if (fd >= 0)
		sys3(NR_close, fd, 0, 0);
	if (h && (e || h->ending))
		sw_end(h);
	return !h ? -1 : e || h->ending ? -2 : 0;
}

int sw_start_at(long s, int pid)
{
	int fd = -1;
	struct sw_header *h = prepare(&fd);
	return begun(h, fd, h ? hand_over(s, fd, pid, 0) : -1);
}

int sw_start(const char *socket)
{
	struct { int32_t pid, uid, gid; } peer = {0, 0, 0};
	uint32_t n = sizeof peer;
	int fd = -1, e = -1;
	struct sw_header *h = prepare(&fd);
	long s = h ? dial(socket) : -1;
	if (s >= 0) {
		sys6(NR_getsockopt, s, 1, 17 /* SO_PEERCRED */, P(&peer), P(&n), 0);
		e = hand_over(s, fd, peer.pid, 1);
		sys3(NR_close, s, 0, 0);
	}
	return begun(h, fd, e);
}

/* sw_socket_from_environment reads SEEDWALK_SOCKET from the process's initial environment. */
int sw_socket_from_environment(char *path, int room)
{
	static const char name[] = "SEEDWALK_SOCKET=";
	char buf[512];
	int at = 0, skip = 0, out = -1;
	long n, fd = open_file("/proc/self/environ", 02000000);
	if (fd < 0)
		return -1;
	while (out != room && (n = sys3(NR_read, fd, P(buf), sizeof buf)) > 0) {
		for (long i = 0; i < n && out != room; i++) {
			char c = buf[i];
			if (out >= 0) {
				path[out++] = c;
				if (!c)
					goto done;
			} else if (!c) {
				at = skip = 0;
			} else if (!skip && c == name[at]) {
				if (!name[++at])
					out = 0;
			} else {
				skip = 1;
			}
		}
	}
	out = -1;
done:
	sys3(NR_close, fd, 0, 0);
	return out > 1 ? 0 : -1;
}
