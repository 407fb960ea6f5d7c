// The Windows half of own_protocol.cpp, in its namespace: one thread after another is suspended, walked to
// its first managed frame, and passed to the CLR with that frame as the seed.

constexpr uint8_t wanted[16] = {0xcd, 0x35, 0x09, 0xcc, 0x18, 0xa5, 0x7d, 0x48, 0xb0, 0xbb, 0xa9, 0x32, 0x14, 0xe6, 0x54, 0x78}; // ICorProfilerInfo2
constexpr Result unmanaged_context = 0x8013135f;

long bind(Thread &t, uint32_t os_thread)
{
	ULONG_PTR low, high;
	GetCurrentThreadStackLimits(&low, &high);
	t.low = low, t.high = high;
	__asm__("movq %%gs:0x30, %0" : "=r"(t.tib)); // NT_TIB.Self
	t.handle = OpenThread(THREAD_SUSPEND_RESUME | THREAD_GET_CONTEXT | THREAD_QUERY_INFORMATION, FALSE, os_thread);
	return t.handle ? static_cast<long>(os_thread) : 0;
}

void unbind(Thread &t) { CloseHandle(t.handle); }

bool claim(Thread &t, uint64_t id) // ThreadDestroyed waits for a claimed thread
{
	claimed = id;
	if (id && t.tid && t.id == id) // in this order: the entry may have been reused
		return true;
	claimed = 0;
	return false;
}

bool copy_stack(Sample &s, const Thread &t)
{
	uint64_t sp = s.context.Rsp, limit = reinterpret_cast<uint64_t>(t.tib->StackLimit);
	s.address = sp;
	s.length = sp >= limit && sp < s.high ? s.high - sp : 0; // else on a fiber, or at the guard page
	if (s.length > sizeof s.stack)
		s.length = sizeof s.stack;
	memcpy(s.stack, reinterpret_cast<const void *>(sp), s.length);
	return s.length != 0;
}

// The window, from SuspendThread to ResumeThread: no heap, no lock, no output in here. True: the CLR can
// answer only after the thread has run on.
bool walk(seedwalk_handle h, Sample &s)
{
	static seedwalk_frame frames[512];
	seedwalk_sample sample = described(s);
	seedwalk_walk_request request{};
	request.size = sizeof request, request.room = 512, request.sample = &sample, request.frames = frames;
	request.seed = &s.seed, request.seed_size = sizeof s.seed;
	seedwalk_result result{};
	result.size = sizeof result;
	s.seed = s.context;
	if (seedwalk_walk(h, &request, &result) != SEEDWALK_OK)
		return false;
	if (result.rescan)
		code_changed = true; // it came after the last scan
	else if (result.verdict == SEEDWALK_SEED_NO_MANAGED)
		return false;
	if (result.rescan || result.loading || result.verdict > SEEDWALK_SEED_FOUND)
		return true;
	bool needed = result.verdict == SEEDWALK_SEED_FOUND;
	s.result = ask_clr(s, needed ? &s.seed : nullptr);
	if (s.result == unmanaged_context && !needed) // meanwhile a collection has redirected it
		s.result = ask_clr(s, &s.seed);
	return s.result & 0x80000000;
}

bool once(seedwalk_handle h, Sample &s, Thread &t, bool *again)
{
	s.state = Idle, s.result = fail, s.count = 0, s.id = t.id;
	if (!claim(t, s.id))
		return false;
	s.low = t.low, s.high = t.high;
	if (SuspendThread(t.handle) != static_cast<DWORD>(-1)) {
		s.context.ContextFlags = CONTEXT_FULL | CONTEXT_FLOATING_POINT;
		if (GetThreadContext(t.handle, &s.context) && copy_stack(s, t)) { // only now is it certainly stopped
			*again = walk(h, s);
			s.state = Copied;
		}
		ResumeThread(t.handle);
	}
	claimed = 0;
	return s.state == Copied;
}

bool prime() // the very first DoStackSnapshot, of a running thread
{
	for (Thread &t : threads) {
		uint64_t id = t.id;
		if (!claim(t, id))
			continue;
		samples[0].id = id;
		ask_clr(samples[0], nullptr);
		claimed = 0;
		if (samples[0].count)
			return true;
	}
	return false;
}

int take(seedwalk_handle h)
{
	static bool primed;
	static size_t turn;
	int n = 0;
	if (!primed && !(primed = prime()))
		return 0;
	for (size_t i = 0; i < 1024 && n < slots; i++) {
		Thread &t = threads[(turn + i) % 1024];
		bool again = true, taken = false;
		for (int tries = 0; t.tid && again && tries < 6; tries++) {
			if (tries)
				rest(1 << (tries - 1)); // the thread needs a processor to leave a stub, and may wait for one
			renew(h);
			again = false;
			taken = once(h, samples[n], t, &again);
		}
		n += taken;
	}
	turn += 1;
	return n;
}

DWORD WINAPI life(void *body) { return reinterpret_cast<void (*)()>(body)(), 0; }
bool start(void (*body)()) { return CreateThread(nullptr, 0, life, reinterpret_cast<void *>(body), 0, nullptr) != nullptr; }
bool set_signal() { return true; } // not needed on Windows
