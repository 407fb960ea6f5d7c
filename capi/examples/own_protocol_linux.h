// The Linux half of own_protocol.cpp, in its namespace: the runtime is suspended once, every thread copies
// itself in a signal handler, and the CLR is called without a seed.

constexpr uint8_t wanted[16] = {0x52, 0x51, 0x1b, 0x2f, 0x69, 0xc8, 0xc9, 0x40, 0xaa, 0x5f, 0x3a, 0xbe, 0x02, 0x6b, 0xd7, 0x20}; // ICorProfilerInfo10

long bind(Thread &t, uint32_t)
{
	pthread_attr_t attr;
	void *low;
	size_t size;
	if (pthread_getattr_np(pthread_self(), &attr) != 0)
		return 0;
	bool known = pthread_attr_getstack(&attr, &low, &size) == 0;
	t.low = reinterpret_cast<uint64_t>(low);
	t.high = t.low + size;
	pthread_attr_destroy(&attr);
	return known ? syscall(SYS_gettid) : 0;
}

void unbind(Thread &) {}

void on_signal(int, siginfo_t *why, void *context) // only copies
{
	Sample &s = samples[why->si_value.sival_int & (slots - 1)];
	int asked = Asked, saved = errno;
	if (s.tid == syscall(SYS_gettid) && s.state.compare_exchange_strong(asked, Copying)) {
		memcpy(&s.context, context, sizeof s.context);
		uint64_t sp = static_cast<uint64_t>(s.context.uc_mcontext.gregs[REG_RSP]);
		s.address = sp - 128; // the red zone
		s.length = sp > s.low && sp < s.high ? s.high - s.address : 0;
		if (s.length > sizeof s.stack)
			s.length = sizeof s.stack;
		memcpy(s.stack, reinterpret_cast<const void *>(s.address), s.length);
		s.state = Copied;
	}
	errno = saved;
}

void ask(Sample &s, Thread &t)
{
	s.id = t.id, s.low = t.low, s.high = t.high, s.count = 0, s.result = fail;
	s.tid = t.tid.load();
	s.state = Idle; // its contents belong to another round
	if (!s.tid)
		return;
	s.state = Asked;
	siginfo_t why {};
	why.si_signo = SIGRTMIN + 5;
	why.si_code = SI_QUEUE;
	why.si_pid = getpid();
	why.si_uid = getuid();
	why.si_value.sival_int = static_cast<int>(&s - samples);
	// Not pthread_sigqueue: a native thread may have ended long before its ThreadDestroyed.
	if (syscall(SYS_rt_tgsigqueueinfo, getpid(), s.tid.load(), why.si_signo, &why) != 0)
		s.state = Idle;
}

bool answered(Sample &s) // within 25 ms
{
	for (int i = 0; i < 500 && s.state != Copied && s.state != Idle; i++)
		usleep(50);
	int asked = Asked;
	s.state.compare_exchange_strong(asked, Idle);
	return s.state == Copied;
}

// One suspension of the runtime: no heap, no lock, no output in here.
int take(seedwalk_handle)
{
	int n = 0;
	if (call(Suspend) != ok) // a collection is running: next time
		return 0;
	// The window opens only here: SuspendRuntime waits for the ThreadStore lock, whose owner may be in
	// ThreadDestroyed, which waits for the window.
	window = true;
	static size_t turn;
	for (size_t i = 0; i < 1024 && n < slots; i++) {
		Thread &t = threads[(turn + i) % 1024];
		if (t.tid && samples[n].state != Copying)
			ask(samples[n++], t);
	}
	turn += 1; // start with another thread next time, in case there are more threads than slots
	for (int i = 0; i < n; i++)
		if (answered(samples[i]))
			samples[i].result = ask_clr(samples[i], nullptr);
	window = false;
	call(Resume);
	return n;
}

bool set_signal()
{
	struct sigaction act {};
	act.sa_sigaction = on_signal;
	act.sa_flags = SA_SIGINFO | SA_RESTART; // no SA_ONSTACK: see profiler/host/capture_linux.c
	sigfillset(&act.sa_mask);
	return sigaction(SIGRTMIN + 5, &act, nullptr) == 0;
}

void *life(void *body) { return reinterpret_cast<void (*)()>(body)(), nullptr; }
bool start(void (*body)())
{
	pthread_t t;
	return pthread_create(&t, nullptr, life, reinterpret_cast<void *>(body)) == 0;
}
