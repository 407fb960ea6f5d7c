/* Prints what capture_linux.c and sampler_linux.c do with threads that do not answer, with foreign signals,
 * with masks, and with alternate stacks. One line each. */
#include "../capture_linux.c"
#include "../sampler_linux.c"
#include "../threads_linux.c"

#include <sys/resource.h>

enum { ROOM = 1 << 16, SHORT_US = 20000, LONG_US = 60000000 };

static const char *const states[] = {[SW_IDLE] = "gone", [SW_ASKED] = "no answer", [SW_CAPTURING] = "late", [SW_CAPTURED] = "captured"};
static long tid;
static int blocks, stops_itself, stop;

static void *idle(void *unused)
{
	sigset_t ours, before;
	sigemptyset(&ours);
	sigaddset(&ours, sw_signal_number());
	if (blocks)
		pthread_sigmask(SIG_BLOCK, &ours, NULL);
	long own = syscall(SYS_gettid);
	if (stops_itself && vfork() == 0) { /* the thread does not run before its child ends */
		__atomic_store_n(&tid, own, __ATOMIC_SEQ_CST);
		while (__atomic_load_n(&stop, __ATOMIC_SEQ_CST) == 0)
			usleep(1000);
		_exit(0);
	}
	__atomic_store_n(&tid, own, __ATOMIC_SEQ_CST);
	while (__atomic_load_n(&stop, __ATOMIC_SEQ_CST) == 0)
		usleep(1000);
	pthread_sigmask(SIG_UNBLOCK, &ours, &before);
	while (__atomic_load_n(&stop, __ATOMIC_SEQ_CST) == 1)
		usleep(1000);
	return unused;
}

static pthread_t start(int blocked)
{
	pthread_t t;
	blocks = blocked;
	tid = stop = 0;
	if (pthread_create(&t, NULL, idle, NULL))
		exit(1);
	while (!__atomic_load_n(&tid, __ATOMIC_SEQ_CST))
		usleep(1000);
	return t;
}

/* ask prints whether a request was sent, and what came of it. */
static enum sw_state ask(const char *name, int limit_us)
{
	uint32_t before = serials;
	slots[0].frame_count = 7;
	sw_ask(0, 1, (uint64_t)tid, ~(uint64_t)0 >> 20);
	enum sw_state s = sw_await(0, limit_us);
	if (name)
		printf("%s: %s, %s%s\n", name, serials == before ? "not sent" : "sent", states[s], serials != before && slots[0].frame_count ? ", old frames" : "");
	return s;
}

static void late(const char *name, int limit_us) { printf("%s: %s\n", name, states[sw_await_late(0, limit_us)]); }

/* take calls the handler for a request to slot 0, as the kernel would for a signal of process pid. */
static void take(const char *name, pid_t pid, uint64_t sp, uint64_t high)
{
	siginfo_t info;
	ucontext_t u;
	memset(&info, 0, sizeof info);
	memset(&u, 0, sizeof u);
	__atomic_store_n(&slots[0].word, word(1, SW_ASKED), __ATOMIC_SEQ_CST);
	slots[0].stack_high = high;
	slots[0].foreign = 0;
	info.si_code = SI_QUEUE;
	info.si_pid = pid;
	info.si_value.sival_ptr = (void *)((uint64_t)1 << 32);
	u.uc_mcontext.gregs[REG_RSP] = (greg_t)sp;
	errno = ESPIPE;
	on_signal(sw_signal_number(), &info, &u);
	int kept = errno == ESPIPE;
	enum sw_state s = state_of(slots[0].word);
	printf("%s: %s%s%s\n", name, states[s], s == SW_CAPTURED && slots[0].foreign ? ", foreign" : "", kept ? "" : ", errno changed");
}

struct sw_thread *sw_thread_by_tid(uint64_t id) { return (void)id, NULL; }

/* alternate prints which alternate stack a thread has after it ends. In between, the program may set its own. */
static void alternate(const char *name, int replaces)
{
	static char before[1 << 16], programs[1 << 16];
	stack_t first = {.ss_sp = before, .ss_size = sizeof before}, next = {.ss_sp = programs, .ss_size = sizeof programs}, now;
	struct sw_thread t = {0};
	sigaltstack(&first, NULL);
	more_room(&t);
	if (replaces)
		sigaltstack(&next, NULL);
	less_room(&t);
	sigaltstack(NULL, &now);
	printf("%s: %s\n", name, now.ss_sp == before ? "the one before" : now.ss_sp == programs ? "the program's" : "ours");
}

static sigset_t samplers;
static int ran;

static void body(void)
{
	pthread_sigmask(SIG_BLOCK, NULL, &samplers);
	__atomic_store_n(&ran, 1, __ATOMIC_SEQ_CST);
}

int main(void)
{
	char byte = 0, copy;
	if (read_checked(&copy, (uint64_t)&byte, 1) != 1)
		return puts("refused"), 0;
	if (sw_capture_init(ROOM))
		return 1;
	pthread_t t = start(0);
	stop = 2;
	pthread_join(t, NULL);
	while (!syscall(SYS_tgkill, getpid(), tid, 0)) /* the kernel ends pthread_join before it removes the thread */
		usleep(1000);
	ask("an ended thread", LONG_US);

	t = start(1);
	ask("a thread that blocks the signal", SHORT_US);
	ask("again", SHORT_US);
	__atomic_store_n(&stop, 1, __ATOMIC_SEQ_CST);
	for (int k = 0; k < 3000 && ask(NULL, SHORT_US) != SW_CAPTURED; k++)
		usleep(1000);
	ask("unblocked", LONG_US);
	struct rlimit all, none;
	getrlimit(RLIMIT_SIGPENDING, &all);
	none = all;
	none.rlim_cur = 0;
	setrlimit(RLIMIT_SIGPENDING, &none);
	ask("a full queue", LONG_US);
	setrlimit(RLIMIT_SIGPENDING, &all);
	__atomic_store_n(&stop, 2, __ATOMIC_SEQ_CST);
	pthread_join(t, NULL);

	stops_itself = 1;
	t = start(0);
	ask("a thread that does not run", SHORT_US);
	late("later", SHORT_US);
	ask("again", SHORT_US);
	__atomic_store_n(&stop, 1, __ATOMIC_SEQ_CST);
	for (int k = 0; k < 3000 && ask(NULL, SHORT_US) != SW_CAPTURED; k++)
		usleep(1000);
	__atomic_store_n(&stop, 2, __ATOMIC_SEQ_CST);
	pthread_join(t, NULL);
	t = start(0);
	ask("another", SHORT_US);
	__atomic_store_n(&stop, 1, __ATOMIC_SEQ_CST);
	late("it runs", LONG_US);
	__atomic_store_n(&stop, 2, __ATOMIC_SEQ_CST);
	pthread_join(t, NULL);

	char *pages = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (pages == MAP_FAILED || mprotect(pages + PAGE, PAGE, PROT_NONE))
		return 1;
	uint64_t sp = (uint64_t)pages + PAGE / 2, end = (uint64_t)pages + PAGE;
	take("another process's signal", getpid() + 1, sp, end);
	take("a whole stack", getpid(), sp, end);
	take("a stack that is readable in part", getpid(), sp, end + PAGE);
	take("an unreadable stack", getpid(), end + PAGE / 2, end + PAGE);

	alternate("the alternate stack of a thread that ends", 0);
	alternate("the same if the program has set another", 1);

	sigset_t mine;
	if (sw_start_sampler(body))
		return 1;
	while (!__atomic_load_n(&ran, __ATOMIC_SEQ_CST))
		usleep(1000);
	pthread_sigmask(SIG_BLOCK, NULL, &mine);
	printf("the sampler blocks SIGUSR1: %d, SIGURG: %d; its starter blocks SIGUSR1: %d\n", sigismember(&samplers, SIGUSR1), sigismember(&samplers, SIGURG), sigismember(&mine, SIGUSR1));
	return 0;
}
