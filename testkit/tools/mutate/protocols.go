package main

import "slices"

// protocolFaults are faults in the code that runs while a thread is stopped, or while another thread changes
// the same memory. A fault whose name begins with "order-" swaps two steps, or leaves out a second check.
func protocolFaults() []Fault {
	return slices.Concat(protocolSnapshot(), protocolSeed(), protocolMerge(), protocolCaptures(),
		protocolThreads(), protocolHandler(), protocolProbe(), protocolTool(),
		protocolClient(), protocolEngine())
}

// The tests of each room, the unit tests first.
var (
	worldTests      = &Step{"./sim/native", []string{"-run", "^TestWorlds$/./^$"}}
	captureWorlds   = &Step{"./sim/native", []string{"-run", "^TestWorlds$/^(capture|watchdog)/^$"}}
	threadWorlds    = &Step{"./sim/native", []string{"-run", "^TestWorlds$/^(claim|window|events)/^$"}}
	waitWorlds      = &Step{"./sim/native", []string{"-run", "^TestWorlds$/^(open-waits|a-read|ring-an)/^$"}}
	recordingWorlds = &Step{"./sim/native", []string{"-run", "^TestWorlds$/^(session|another-recording|a-signal|a-real)/^$"}}
	clientWorlds    = &Step{"./sim/native", []string{"-run", "^TestWorlds$/^(copies|a-vendor)/^$"}}
	slotTests       = &Step{"./sample/probe", []string{"-run", "^Test(Ring(Room|KeepsRoom|Hostile|PassesBy|Stale)?|SlotWithTimer|Unsent)$"}}
	snapshotTests   = &Step{"./stack/snapshot", nil}
	seedTests       = &Step{"./stack/seed", nil}
	probeTests      = &Step{"./sample/probe",
		[]string{"-run", "^Test(Reads|ReadWorld|Events|Relay|RelayOfMasks|Reach|Thinning|SlotClock|Below|Ring|RingStale|RingHostile|EndByAnyThread)$"}}
	hostTests    = &Step{"./profiler/host", []string{"-run", "^Test(Capture|Wake)$"}}
	guardTests   = &Step{"./capi", []string{"-run", "^TestGuard$"}}
	outsideTests = &Step{"./sample/outside", nil}
)

func protocolSnapshot() []Fault {
	round, thread, decide := faultsOf(roundFile, protocol...),
		faultsOf(threadFile, protocol...), faultsOf(adviceFile, protocol...)
	return []Fault{
		round("order-alive-before-enter", "threads are looked at before their end is held up",
			"\trt.Enter()\n\tfor i := range threads {\n", "\tfor i := range threads {\n").
			also("\tfor i := range threads {\n\t\tif c := &s.Captures[i]; c.Status != clr.CaptureGone {\n\t\t\trt.Await", "\trt.Enter()\n\tfor i := range threads {\n\t\tif c := &s.Captures[i]; c.Status != clr.CaptureGone {\n\t\t\trt.Await"),
		round("order-leave-before-walk", "threads may end before the CLR has walked them",
			"\t\t\trt.DoStackSnapshot(i, c)\n\t\t}\n\t}\n\trt.Leave()\n",
			"\t\t\trt.DoStackSnapshot(i, c)\n\t\t}\n\t}\n").
			also("\tfor i := range threads {\n\t\tif c := &s.Captures[i]; c.Status != clr.CaptureGone {\n\t\t\trt.DoStack", "\trt.Leave()\n\tfor i := range threads {\n\t\tif c := &s.Captures[i]; c.Status != clr.CaptureGone {\n\t\t\trt.DoStack"),
		round("order-suspended-time", "the resume is no part of the suspended time",
			"\ts.rt.ResumeRuntime()\n\to.SuspendedNS = s.rt.Now() - start\n",
			"\to.SuspendedNS = s.rt.Now() - start\n\ts.rt.ResumeRuntime()\n"),
		round("snapshot-captures", "captures of an earlier round count", "o.Captures = len(threads)",
			"o.Captures = len(s.Captures)"),
		round("snapshot-pause-grows", "the wait between two tries has no bound",
			"pause = min(2*pause, maxPause)", "pause = 2 * pause"),
		round("order-late-in-window", "late answers are taken while the runtime is suspended",
			"\ts.rt.ResumeRuntime()\n\to.SuspendedNS = s.rt.Now() - start\n\to.Captures", "\to.Captures").
			also("\t\t\ts.rt.Late(i, c)\n\t\t}\n\t}\n", "\t\t\ts.rt.Late(i, c)\n\t\t}\n\t}\n\ts.rt.ResumeRuntime()\n\to.SuspendedNS = s.rt.Now() - start\n"),
		thread("order-stale-unseen", "a thread is walked with a table of other modules",
			"\tif s.stale(c) {\n\t\treturn\n\t}\n", ""),
		thread("order-stale-decided", "a capture of other modules is judged by its HRESULT",
			"\tcase c.Status == clr.Captured && s.stale(c):\n\t\to.Advice = AdviceStale\n", ""),
		thread("order-release-early", "a thread may end before it is resumed", "\t\ts.rt.Resume(0, t)\n",
			"\t\ts.rt.Release(t)\n\t\ts.rt.Resume(0, t)\n").
			also("\ts.rt.Release(t)\n\tswitch",
				"\tif o.Suspend != clr.Suspended {\n\t\ts.rt.Release(t)\n\t}\n\tswitch"),
		thread("order-claim-late", "a thread is suspended before its end is held up",
			"\tif !s.rt.Claim(t) {\n\t\treturn false\n\t}\n\tstart", "\tstart").
			also("\t\ttry := &o.Each[o.Tries]\n",
				"\t\tif !s.rt.Claim(t) {\n\t\t\ts.rt.Resume(0, t)\n\t\t\treturn false\n\t\t}\n\t\ttry := &o.Each[o.Tries]\n").
			also("\ts.rt.Release(t)\n\tswitch",
				"\tif o.Suspend == clr.Suspended {\n\t\ts.rt.Release(t)\n\t}\n\tswitch"),
		thread("order-broken-walked-again", "a thread that ran on is walked a second time",
			"!c.Broken && o.Verdict", "o.Verdict"),
		thread("thread-asks-in-window", "a refusal for the moment is asked again while the thread is held",
			"\ts.rt.DoStackSnapshot(0, c)\n\tif !c.Broken",
			"\tfor s.rt.DoStackSnapshot(0, c); c.Result == clr.E_FAIL || c.Result == clr.CORPROF_E_STACKSNAPSHOT_UNSAFE; {\n\t\ts.rt.DoStackSnapshot(0, c)\n\t}\n\tif !c.Broken"),
		thread("thread-first-call-suspended", "the first call of the CLR is made while a thread is held",
			"\t\tn, _ := s.rt.Prime(threads[i])\n", "\t\tn := 1\n"),
		thread("snapshot-newer-table", "a table newer than the capture is no other one",
			"c.Loads != s.Loads }", "c.Loads > s.Loads }"),
		thread("snapshot-verdict", "the verdict of a try is lost", "\t\to.Verdict = try.Verdict\n", ""),
		thread("snapshot-pause-constant",
			"the wait between two tries stays the same", "\t\tpause = min(2*pause, mostThreadPause)\n", ""),
		thread("snapshot-any-second-stop", "any second context but managed code is the stub",
			"s.seeder.Seed(now) == seed.StubOnTop", "s.seeder.Seed(now) != seed.NotNeeded"),
		thread("snapshot-primed-again", "priming goes on behind its success",
			"\t\tif s.primed {\n\t\t\tbreak\n\t\t}\n", ""),
		thread("order-prime-released", "priming walks a thread that may end meanwhile",
			"\t\tn, _ := s.rt.Prime(threads[i])\n\t\ts.rt.Release(threads[i])\n",
			"\t\ts.rt.Release(threads[i])\n\t\tn, _ := s.rt.Prime(threads[i])\n"),
		decide("decide-native", "the CLR's other word for no managed frame is not one",
			"if v == seed.NoManaged {", "if v == seed.NoManaged && hr == clr.E_FAIL {"),
	}
}

func protocolSeed() []Fault {
	all := []*Step{seedTests, asked, random, inputs}
	find, judge, witness := faultsOf("stack/seed/find.go", all...), faultsOf(seedFile, all...),
		faultsOf("stack/seed/witness.go", all...)
	methods := faultsOf("stack/seed/methods.go", all...)
	return []Fault{
		find("order-entered-before-foreign", "a special on a foreign stack is looked at first",
			"\tcase foreign(r.SP(), b):\n\t\treturn ForeignStack\n\tcase p.Entered(r.IP()):\n\t\treturn StubOnTop\n", "\tcase p.Entered(r.IP()):\n\t\treturn StubOnTop\n\tcase foreign(r.SP(), b):\n\t\treturn ForeignStack\n"),
		find("order-loading-late", "the frame at the walk's end counts as the topmost",
			"p.Loading(top.ip, ", "p.Loading(s.Regs.IP(), "),
		find("order-top-late", "the walk's end is compared with itself",
			"\ttop := stateOf(s.Regs)\n\tr := w.Walk(s, mem, b, out)\n",
			"\tr := w.Walk(s, mem, b, out)\n\ttop := stateOf(s.Regs)\n"),
		find("seed-special-moves", "the registers of a special are its caller's",
			"*s.Regs, s.Exact, s.Trust = top, true, trust", "_, _ = top, trust"),
		find("seed-special-many", "a special is walked to the stack's end", "out[:min(1, len(out))]", "out"),
		find("seed-47-bits", "an address of x86-64 may have 48 bits", "ipBits: 47", "ipBits: 48"),
		judge("seed-no-bounds-foreign", "a stack of unknown bounds is a foreign one", "b.High != 0 && ", ""),
		judge("seed-full-is-end", "a walk that fills its buffer has reached the end",
			"o.Stop == unwind.EndOfStack:", "o.Stop == unwind.EndOfStack || o.Stop == unwind.BufferFull:"),
		judge("seed-stub-below", "unmanaged frames above a stub are a stub on top",
			"o.Frames == 0 && p.IsStub", "p.IsStub"),
		witness("seed-record-below", "a frame record is below the stack pointer", "fp >= sp && ", ""),
		witness("seed-record-foreign", "a frame record lies outside of the stack",
			" && !foreign(fp, x.b) }", " }"),
		find("seed-top-unchecked", "a method on top is never checked",
			" || o.Verdict == NotNeeded && by.Top", ""),
		methods("seed-outside-record", "code in no module need not have a frame record",
			"x.canPoint(f.FP, f.SP)", "true"),
		witness("seed-short-frame", "a frame may be too small", " || x.short(a, x.t.At(m), f)", ""),
		witness("seed-data-kept", "unwind data are kept", "nil, pearm64.Info{} // the", "nil, x.info // the"),
		methods("seed-no-call", "a seed needs no call", "!x.at.Exact && !x.returned", "false && !x.returned"),
		witness("seed-call-nowhere", "a call has no target", "!x.Code.ReadAt(x.target[:], to)", "to == 0"),
		methods("seed-caller-record", "a method's caller need not have a frame record",
			"depth > 0 && !x.hasRecord(&x.regs)", "false"),
		methods("seed-hook-record", "what the runtime has replaced need not have a frame record",
			"return x.hasRecord(&x.regs)", "return true"),
		witness("seed-saved-link", "a link register that another function has saved is a return address",
			"len(frames) == 1 && frames", "len(frames) == 0 && frames"),
		witness("seed-saved-record", "a frame record is not searched", "min(record+16, sp+longestFrame)",
			"min(record, sp+longestFrame)"),
		judge("order-stub-first", "a stub on top need not have plausible registers",
			"\tcase (top.sp&", "\tcase o.Stop == unwind.Managed && o.Frames == 0 && p.IsStub(end.ip):\n\t\treturn StubOnTop\n\tcase (top.sp&"),
		witness("seed-below-copy", "a seed may lie below the copied stack",
			"s.Regs.SP() >= mem.Hot().Addr && ", ""),
		judge("seed-zero-ip", "an address of 0 may be a seed's", "s.ip != 0 && ", ""),
	}
}

func protocolMerge() []Fault {
	all := []*Step{mergeTests, asked, more, inputs}
	in, managed, out := faultsOf("stack/merge/merge.go", all...), faultsOf("stack/merge/managed.go", all...),
		faultsOf("stack/merge/write.go", all...)
	fill := faultsOf("stack/merge/fill.go", all...)
	return []Fault{
		in("order-mismatch-first", "a frame that the walk has passed is not compared",
			"\tif i >= 0 && m.same(i, fid, known) {\n\t\treturn m.report(i, true)\n\t}\n\tif i >= 0 && m.sp() > m.in.Frames[i].SP && m.sp() > m.in.Frames[i].FP {\n\t\treturn m.lost(GapMismatch)\n\t}\n", "\tif i >= 0 && m.sp() > m.in.Frames[i].SP && m.sp() > m.in.Frames[i].FP {\n\t\treturn m.lost(GapMismatch)\n\t}\n\tif i >= 0 && m.same(i, fid, known) {\n\t\treturn m.report(i, true)\n\t}\n"),
		in("merge-no-frame-pointer", "two frames without a frame pointer have the same",
			"f.FP == m.fp() && f.FP != 0 && m.grown(i)", "f.FP == m.fp() && m.grown(i)"),
		in("merge-grown-caller", "a frame pointer may be the caller's",
			"return i+1 < len(m.in.Frames) && m.in.Frames[i+1].FP != f.FP", "return i+1 < len(m.in.Frames)"),
		in("merge-grown-last", "the last frame may have grown without a proof",
			"return i+1 < len(m.in.Frames) && m.in", "return i+1 >= len(m.in.Frames) || m.in"),
		in("merge-frameless-above", "a stub may lie above the frame that called it",
			"m.sp() <= f.SP && !m.codeBetween", "!m.codeBetween"),
		in("merge-managed-between", "a return address in managed code does not count",
			" || t.IsManaged(v) {", " {"),
		in("merge-marker-anywhere", "any walk at a function's first byte ends",
			"!m.at.Exact && m.at.Trust == unwind.TrustCLR && m.entries", "!m.at.Exact && m.entries"),
		in("merge-guess-sp", "SP stays where a wrong guess has led", "\t\tm.regs.SetSP(guessed[0].SP)\n", ""),
		in("merge-hijack-lookup", "a return address behind managed code's last call is not managed",
			"!m.w.Table().IsManaged(m.at.Address().Lookup())", "!m.w.Table().IsManaged(m.ip())"),
		in("merge-guess-confirmed", "a frame of the CLR confirms no guess",
			"m.guess = -1\n\tframes", "frames"),
		in("merge-fill-here", "frames between are sought from the CLR's registers",
			"m.fill(i, here)", "m.fill(i, false)"),
		managed("merge-hijack-slot", "a slot without the stub's address is a hijacked one",
			"if v, ok := m.mem.Word(slot); !ok || v != m.to.IP() {", "if _, ok := m.mem.Word(slot); !ok {"),
		managed("order-refused-late", "that the CLR refused is said behind another gap",
			" && m.res.Gap == GapNone && m.nextManaged() < 0", " && m.nextManaged() < 0"),
		managed("merge-fresh-kept", "fresh code stays doubtful",
			"\tif m.at.Trust == unwind.TrustOutside { // the CLR knows this code\n\t\tm.at.Trust = unwind.TrustCLR\n\t}\n", ""),
		managed("merge-rejudge-later",
			"fresh code below the leaf changes the verdict", "m.res.N != 0 || ", ""),
		in("order-gap-first", "a gap is written before a wrong guess is removed",
			"\tif i >= 0 && m.guess >= 0 && m.sp() > m.in.Frames[i].SP {\n\t\tm.takeBack()\n\t}\n\tm.gap(g)\n",
			"\tm.gap(g)\n\tif i >= 0 && m.guess >= 0 && m.sp() > m.in.Frames[i].SP {\n\t\tm.takeBack()\n\t}\n"),
		fill("fill-hidden-kept", "frames that are removed still count as hidden",
			"m.res.N, m.res.Hidden = written, hidden", "_, m.res.N = hidden, written"),
		out("order-guess-late", "a guess begins behind its first frame",
			"\t\tif f.Trust.Doubtful() && m.guess < 0 {\n\t\t\tm.guess = m.res.N\n\t\t}\n\t\tif !m.room() {\n\t\t\tm.gap(GapLimit)\n\t\t\treturn\n\t\t}\n\t\tm.add().unmanaged(f)\n", "\t\tif !m.room() {\n\t\t\tm.gap(GapLimit)\n\t\t\treturn\n\t\t}\n\t\tm.add().unmanaged(f)\n\t\tif f.Trust.Doubtful() && m.guess < 0 {\n\t\t\tm.guess = m.res.N\n\t\t}\n"),
	}
}

func protocolCaptures() []Fault {
	c := faultsOf("profiler/host/capture_linux.c", captureWorlds, hostTests)
	s := faultsOf("profiler/host/sampler_linux.c", hostTests)
	w := faultsOf("profiler/host/watchdog_windows.c", captureWorlds)
	return []Fault{
		c("order-await-relaxed", "the copy is read before its word",
			"uint32_t now = __atomic_load_n(&s->word, __ATOMIC_ACQUIRE);\n",
			"uint32_t now = __atomic_load_n(&s->word, __ATOMIC_RELAXED);\n"),
		c("order-withdrawn-blind", "a copy that came in time is not seen",
			"SW_IDLE) ? SW_ASKED : state_of(__atomic_load_n(&s->word, __ATOMIC_ACQUIRE));",
			"SW_IDLE) ? SW_ASKED : SW_CAPTURING;"),
		c("order-ask-early", "the request is there before the stack's end",
			"\ts->tid = tid;\n\ts->stack_high = stack_high;\n", "\ts->tid = tid;\n").
			also("\t__atomic_store_n(&s->word, word(serial, SW_ASKED), __ATOMIC_RELEASE);\n",
				"\t__atomic_store_n(&s->word, word(serial, SW_ASKED), __ATOMIC_RELEASE);\n\ts->stack_high = stack_high;\n"),
		c("order-captured-early", "a copy is there before its stack",
			"\t\t\tcopy_stack(s);\n\t\t\t__atomic_store_n(&s->word, word(serial, SW_CAPTURED), __ATOMIC_RELEASE);\n", "\t\t\t__atomic_store_n(&s->word, word(serial, SW_CAPTURED), __ATOMIC_RELEASE);\n\t\t\tcopy_stack(s);\n"),
		c("capture-silent", "a thread that did not answer is asked again at once", "\tsilent[s->tid % SILENT] = s->tid;\n", ""),
		c("capture-silent-for-ever", "a thread that did not answer once is never asked again", "\t\t*slot = 0;\n", "\t\treturn 1;\n"),
		c("capture-late-blocked", "a thread that runs on is late",
			"& bit ? BLOCKED : DUE", "& bit ? DUE : DUE"),
		c("capture-never-late", "a thread without a processor does not answer",
			"sent_to(s->tid) == DUE ? SW_CAPTURING : withdraw(s, now)", "withdraw(s, now)"),
		c("capture-again", "the stack of an earlier request counts",
			"\ts->stack_len = s->frame_count = 0;\n", ""),
		c("capture-full-queue", "a thread with a full queue has ended",
			"\t\ts->busy = errno == EAGAIN;", "\t\ts->busy = 0;"),
		c("order-failed-send", "a request that was not sent stays", "\t\t__atomic_store_n(&s->word, word(serial, SW_IDLE), __ATOMIC_RELEASE);\n", ""),
		c("capture-red-zone", "the red zone is not copied", "from = sp - 128, end", "from = sp, end"),
		c("capture-errno", "a signal changes the program's errno",
			"\terrno = saved_errno;\n}\n\nvoid *sw_reserve", "\t(void)saved_errno;\n}\n\nvoid *sw_reserve"),
		c("capture-strangers", "a signal of another process is one of ours",
			"info->si_pid == getpid() && index < SW_SLOTS", "index < SW_SLOTS"),
		c("capture-short", "a stack that is readable in part is whole",
			"\tif (s->stack_len < len)\n\t\ts->foreign = 1;\n", ""),
		c("capture-wait-note", "every wait is one that ended", "memcmp(now, waited[slot].was, sizeof now) ? SW_WOKEN : SW_WAKE_NOT", "SW_WOKEN"),
		s("sampler-sigurg", "Go cannot preempt the sampler's thread", "\tsigdelset(&all, SIGURG);\n", ""),
		s("sampler-mask", "the caller's signals stay blocked",
			"\tpthread_sigmask(SIG_SETMASK, &old, NULL);\n", ""),
		w("watch-patience", "the time of an earlier question counts", "now == seen ? ms + LOOK_MS : 0",
			"now == seen ? ms + LOOK_MS : ms + LOOK_MS"),
		w("watch-one-count", "the CLR's suspension stays", "before > 1);", "before > 2);"),
		w("order-let-go-lost", "a thread that ran on has not", "return let_go = 1;", "return let_go = 0;"),
		w("watch-let-go-stays", "one thread that ran on is all later ones",
			"\tint was = let_go;\n\tlet_go = 0;\n", "\tint was = let_go;\n"),
		w("order-resumed-early", "the watchdog says that it has resumed before it has",
			"\t\tlet_run(thread);\n\t\t__atomic_store_n(&state, RESUMED, __ATOMIC_SEQ_CST);\n",
			"\t\t__atomic_store_n(&state, RESUMED, __ATOMIC_SEQ_CST);\n\t\tlet_run(thread);\n"),
	}
}

func protocolThreads() []Fault {
	t := faultsOf("profiler/host/threads.c", threadWorlds, hostTests)
	e := faultsOf("profiler/host/events.c", threadWorlds, hostTests)
	return []Fault{
		t("order-dead-late", "a thread's end is told behind the wait for its walk",
			"\t__atomic_store_n(&t->dead, 1, __ATOMIC_SEQ_CST);\n\twhile", "\twhile").
			also("\twait_for_sampler(thread_id);\n\t__atomic_store_n(&t->tid, 0, __ATOMIC_RELEASE);\n",
				"\twait_for_sampler(thread_id);\n\t__atomic_store_n(&t->dead, 1, __ATOMIC_SEQ_CST);\n\t__atomic_store_n(&t->tid, 0, __ATOMIC_RELEASE);\n"),
		t("order-window-unguarded", "a thread's end does not wait for an open window",
			"\twhile (__atomic_load_n(&window_open, __ATOMIC_SEQ_CST))\n\t\tsw_sleep_us(100);\n", ""),
		t("order-moved-unguarded", "a thread is bound again while it is walked",
			"\twait_for_sampler(thread_id);\n\tsw_thread_unbind(t);\n\tuint64_t",
			"\tsw_thread_unbind(t);\n\tuint64_t"),
		t("order-moved-kept", "a thread that moves keeps its number meanwhile",
			"\t__atomic_store_n(&t->tid, 0, __ATOMIC_SEQ_CST);\n\twait", "\twait"),
		t("order-unbind-late", "an entry is free before its thread is unbound",
			"\tsw_thread_unbind(t);\n\t__atomic_store_n(&t->thread_id, 0, __ATOMIC_RELEASE);\n",
			"\t__atomic_store_n(&t->thread_id, 0, __ATOMIC_RELEASE);\n\tsw_thread_unbind(t);\n"),
		t("threads-used", "a new entry is not among those that are searched",
			"n < i + 1 && !__atomic", "n < i && !__atomic"),
		t("threads-refused-claim", "a claim of a thread that ended stays",
			"\t\treturn 1;\n\tsw_release();\n", "\t\treturn 1;\n"),
		t("threads-old-name", "a thread has its predecessor's name", "\t\tt->name[0] = 0;\n", ""),
		e("order-lap-relaxed", "an event is read before its turn",
			"if (__atomic_load_n(&cells[tail % SW_EVENTS].turn, __ATOMIC_ACQUIRE) != lap + 1)",
			"if (__atomic_load_n(&cells[tail % SW_EVENTS].turn, __ATOMIC_RELAXED) != lap + 1)"),
		e("events-lap", "a cell is free a lap early", "turn, lap + 2, __ATOMIC_RELEASE",
			"turn, lap, __ATOMIC_RELEASE"),
	}
}

func protocolHandler() []Fault {
	h := faultsOf("sample/probe/src/handler.c", worldTests, probeTests)
	return []Fault{
		h("find-any-recording", "a signal of an earlier recording names a slot",
			" && si->value >> 32 == h->tag) {", ") {"),
		h("find-any-owner", "a slot's next thread answers for the one before",
			"return s->tid == tid ? s : 0;\n\t}", "return s;\n\t}"),
		h("order-ask-forgotten", "a request that came meanwhile counts as answered",
			"__atomic_store_n(&s->answered, ask, __ATOMIC_RELEASE)",
			"__atomic_store_n(&s->answered, s->ask, __ATOMIC_RELEASE)"),
		h("order-answer-early", "a request is answered before it is obeyed",
			"\t\tobey(h, s, uc, entry);\n",
			"\t\t__atomic_store_n(&s->answered, ask, __ATOMIC_RELEASE);\n\t\tobey(h, s, uc, entry);\n"),
		h("order-op-early", "what is asked is read before that something is",
			"\tuint32_t ask = __atomic_load_n(&s->ask, __ATOMIC_ACQUIRE);\n",
			"\tuint32_t ask = __atomic_load_n(&s->ask, __ATOMIC_RELAXED);\n"),
		h("order-reaping-late", "entries that came meanwhile are forgotten",
			"\tif (!__atomic_exchange_n(&h->reaping, 0, __ATOMIC_ACQ_REL))\n\t\treturn;\n",
			"\tif (!__atomic_load_n(&h->reaping, __ATOMIC_ACQUIRE))\n\t\treturn;\n").
			also("\t\t__atomic_store_n(&h->reap[i], 0, __ATOMIC_RELEASE);\n\t}\n",
				"\t\t__atomic_store_n(&h->reap[i], 0, __ATOMIC_RELEASE);\n\t}\n\t__atomic_store_n(&h->reaping, 0, __ATOMIC_RELEASE);\n"),
		h("order-reap-early", "a place of the list is free before its timer ends",
			"\t\tdisarm(h, slots(h) + at - 1);\n\t\t__atomic_store_n(&h->reap[i], 0, __ATOMIC_RELEASE);\n",
			"\t\t__atomic_store_n(&h->reap[i], 0, __ATOMIC_RELEASE);\n\t\tdisarm(h, slots(h) + at - 1);\n"),
		h("order-reap-twice", "two handlers work on one entry",
			" || !__atomic_compare_exchange_n(&h->reap[i], &at, at | SW_REAPED, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))", ")"),
		h("reap-any-number", "a slot's number has no bound", "at - 1 >= SW_SLOTS || ", "!at || "),
		h("order-put-back-twice", "two threads put the handlers back", "\tif (first)\n\t\tsw_put_back(h);",
			"\t(void)first;\n\tsw_put_back(h);"),
		h("order-ending-again", "every signal behind the end ends again",
			"if (h->ending && !h->left)", "if (h->ending)"),
		h("forked-inside", "a child waits for its parent's handlers",
			"\tsw_shared = 0;\n\t__atomic_store_n(&inside, 0, __ATOMIC_SEQ_CST);\n", "\tsw_shared = 0;\n"),
		h("forked-shared", "a child writes into its parent's recording",
			"\tsw_shared = 0;\n\t__atomic_store_n(&inside", "\t__atomic_store_n(&inside"),
		h("arm-unset", "a timer that cannot be set stays",
			"\t\tsys3(NR_timer_delete, id, 0, 0);\n\ts->error", "\t\te = e;\n\ts->error"),
		h("arm-twice", "a thread may have two timers", "\tif (s->timer)\n\t\treturn;\n", ""),
		h("armed-weight", "the copy of an armed thread has its weight",
			"sample(h, s, uc, SW_ARMED, 0, entry)", "sample(h, s, uc, SW_ARMED, 1, entry)"),
		h("tick-overrun", "the overrun is no part of a sample", "1 + (uint32_t)si->overrun",
			"1 + 0 * (uint32_t)si->overrun"),
		h("tick-dead-tool", "a tool that is gone is sent samples",
			"else if (si->code == SI_TIMER && !abandoned(h, entry))", "else if (si->code == SI_TIMER)"),
		h("order-low-first", "the stack's bounds are read in two places",
			"int own = low && from >= low && sp < high", "int own = low && from >= s->low && sp < s->high"),
		h("copy-foreign", "a foreign stack is copied without a check",
			"int own = low && from >= low && sp < high", "int own = low && from >= low"),
		h("stranger-timer", "a timer of an earlier recording stays",
			"\t\t\tsys3(NR_timer_delete, si->timer, 0, 0); /*", "\t\t\t(void)si; /*"),
	}
}

func protocolProbe() []Fault {
	all := []*Step{recordingWorlds, probeTests}
	relay, session, start := faultsOf("sample/probe/src/relay.c", all...),
		faultsOf("sample/probe/src/session.c", all...), faultsOf("sample/probe/src/start.c", all...)
	events, copies := faultsOf("sample/probe/src/events.c", waitWorlds, probeTests),
		faultsOf("sample/probe/src/copy.c", waitWorlds, probeTests)
	read := faultsOf("sample/probe/src/read.c", readWorldTests, waitWorlds)
	return []Fault{
		relay("order-relayed-late", "a signal of the relay is counted behind its handler",
			"\t__atomic_fetch_add(&h->relayed, 1, __ATOMIC_ACQ_REL);\n", "").
			also("\tsw_handler(sig, si, uc);\n",
				"\tsw_handler(sig, si, uc);\n\t__atomic_fetch_add(&h->relayed, 1, __ATOMIC_ACQ_REL);\n"),
		relay("relay-in-fault", "a mask is changed while a fault is handled",
			"if (!(*blocked_mask(uc) & sw_faults()))\n\t\t*", "*"),
		relay("relay-runtimes", "the runtime's own signal is taken for ours",
			"if (si->code != SI_QUEUE || !h) {", "if (!h) {"),
		relay("order-relay-other", "another handler is replaced",
			"if (stays || sigaction_raw(sig, 0, &a) || a.handler != (uint64_t)relay)",
			"if (stays || sigaction_raw(sig, 0, &a))"),
		session("order-stop-before-events", "events come while the session ends",
			"\t__atomic_store_n(&h->events, 0, __ATOMIC_RELEASE);\n\t((hresult (*)(void *, uint64_t))method(mine, INFO_STOP))(mine, my_session);\n", "\t((hresult (*)(void *, uint64_t))method(mine, INFO_STOP))(mine, my_session);\n\t__atomic_store_n(&h->events, 0, __ATOMIC_RELEASE);\n"),
		session("order-session-late", "the session is told behind its helper",
			"\t__atomic_store_n(&h->session, 1, __ATOMIC_RELEASE);\n\thelper(h);\n",
			"\thelper(h);\n\t__atomic_store_n(&h->session, 1, __ATOMIC_RELEASE);\n"),
		session("session-no-helper", "the end of a session without a helper is waited for",
			" || !__atomic_load_n(&h->helper, __ATOMIC_ACQUIRE))\n\t\treturn 0;", ")\n\t\treturn 0;"),
		session("order-no-helper", "a helper that could not be made is being made",
			"\tif (pthread_create(&id, attributes, finish, h))\n\t\t__atomic_store_n(&h->helper, 0, __ATOMIC_RELEASE);\n", "\tpthread_create(&id, attributes, finish, h);\n"),
		start("order-shared-late", "handlers are there before the recording",
			"\tsw_shared = h;\n\ttake_signals(h);\n", "\ttake_signals(h);\n\tsw_shared = h;\n"),
		start("order-left-early", "the end is told before the handlers are put back",
			"\t__atomic_store_n(&h->left, SW_LEFT, __ATOMIC_RELEASE);\n", "").
			also("\tguard(h, 0);\n\tsw_unrelay(h);\n",
				"\t__atomic_store_n(&h->left, SW_LEFT, __ATOMIC_RELEASE);\n\tguard(h, 0);\n\tsw_unrelay(h);\n"),
		start("start-over-living", "a second tool takes a living one's recording",
			"\tif (h && !h->left && now() - h->heartbeat < h->stale)\n\t\treturn 0;",
			"\tif (0)\n\t\treturn 0;"),
		start("start-ended-living", "a recording that has ended is a living one",
			"if (h && !h->left && now()", "if (h && now()"),
		start("order-guard-first", "masks change before the relay looks at them",
			"\tsw_relay(h);\n\tguard(h, 1);\n", "\tguard(h, 1);\n\tsw_relay(h);\n"),
		start("order-session-runs", "a session that ends is not waited for",
			"\tif (sw_silence(h))\n\t\treturn 0;", "\tsw_silence(h);"),
		events("order-depth-early", "a wait counts before it is written",
			"\t__atomic_store_n(&w->depth, depth + 1, __ATOMIC_RELEASE);\n", "").
			also("\tstruct sw_open *o = &w->open[depth];\n",
				"\tstruct sw_open *o = &w->open[depth];\n\t__atomic_store_n(&w->depth, depth + 1, __ATOMIC_RELEASE);\n"),
		events("order-waiter-free", "a place is free before its last wait is closed",
			"\t\t__atomic_store_n(&w->depth, i - 1, __ATOMIC_RELEASE);\n\t\tif (i == 1)\n\t\t\t__atomic_store_n(&w->tid, 0, __ATOMIC_RELEASE);\n", "\t\tif (i == 1)\n\t\t\t__atomic_store_n(&w->tid, 0, __ATOMIC_RELEASE);\n\t\t__atomic_store_n(&w->depth, i - 1, __ATOMIC_RELEASE);\n"),
		events("order-other-waiter", "two threads take one place",
			"if (__atomic_compare_exchange_n(&w->tid, &none, tid, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))\n\t\t\treturn w;", "if (__atomic_load_n(&w->tid, __ATOMIC_ACQUIRE) == none) {\n\t\t\t__atomic_store_n(&w->tid, tid, __ATOMIC_RELAXED);\n\t\t\treturn w;\n\t\t}"),
		events("wait-outer", "a wait is its own outer one",
			"*inner = i > 1 && w->open[i - 2].id == CONTENTION_START",
			"*inner = i > 0 && w->open[i - 1].id == CONTENTION_START"),
		events("wait-lost-stop", "a wait without a stop stays open",
			"\t\t\tdepth = i;\n", "\t\t\tdepth += 0;\n"),
		read("order-read-done", "a read is done before its size is there",
			"\t\tr->got = (uint32_t)answer(r, room(h, i));\n",
			"\t\tuint32_t got = (uint32_t)answer(r, room(h, i));\n").
			also("\t\tsys3(NR_futex, P(&r->state), FUTEX_WAKE, 1);\n",
				"\t\tr->got = got;\n\t\tsys3(NR_futex, P(&r->state), FUTEX_WAKE, 1);\n"),
		copies("copy-missed", "an event without room is not counted", "\t\t__atomic_fetch_add(&h->missed, 1, __ATOMIC_RELAXED);\n", ""),
		copies("order-event-commit", "an event is committed before its flags",
			"\tr->flags = (uint16_t)flags;\n\tr->nanos",
			"\t__atomic_store_n(&r->commit, at | 1, __ATOMIC_RELEASE);\n\tr->flags = (uint16_t)flags;\n\tr->nanos"),
	}
}

func protocolTool() []Fault {
	ask, events, file, ring := faultsOf("sample/probe/ask_linux.go", probeTests),
		faultsOf("sample/probe/events.go", probeTests),
		faultsOf("sample/probe/file_linux.go", slotTests, outsideTests, probeTests),
		faultsOf("sample/probe/ring.go", slotTests, probeTests)
	return []Fault{
		ask("order-tid-late", "a read is asked before its thread is named",
			"\tatomic.StoreUint32(&r.tid, m.f.inner(a.TID))\n\tm.point(\"ask\")\n\tatomic.StoreUint32(&r.state, asked)\n", "\tatomic.StoreUint32(&r.state, asked)\n\tm.point(\"ask\")\n\tatomic.StoreUint32(&r.tid, m.f.inner(a.TID))\n"),
		ask("order-withdraw-store", "a read that was taken is withdrawn",
			"if atomic.CompareAndSwapUint32(&r.state, asked, m.seq|readFree) {",
			"if atomic.StoreUint32(&r.state, m.seq|readFree); true {"),
		ask("order-taken-lost", "a read that was taken late is lost",
			"\tif m.await(r, m.limit) {\n\t\treturn true, false\n\t}\n\treturn false, true",
			"\treturn false, true"),
		events("order-wait-owner", "a wait may have got another owner",
			"atomic.LoadUint32(&w.tid) == tid && atomic.LoadUint32(&w.depth) >= 1",
			"atomic.LoadUint32(&w.depth) >= 1"),
		events("order-wait-since", "a wait may have got another time",
			" && atomic.LoadUint64(&w.open[0].since) == since {", " {"),
		events("order-wait-writing", "a wait that is being written counts",
			"tid == 0 || depth == 0 || since == 0 {", "tid == 0 || depth == 0 {"),
		events("order-want-early", "events are wanted before their bound is there",
			"\tatomic.StoreUint64(&f.h.waitMin, waitMin)\n\tatomic.StoreUint32(&f.h.events, events)\n",
			"\tatomic.StoreUint32(&f.h.events, events)\n\tatomic.StoreUint64(&f.h.waitMin, waitMin)\n"),
		file("order-real-late", "a real-time signal is counted behind its sending",
			"\tcase int(f.h.realTime):\n\t\tatomic", "\tcase int(f.h.realTime):\n\t\tdefer atomic"),
		file("order-op-late", "a request is there before what it is for",
			"\tatomic.StoreUint32(&s.op, uint32(op))\n\tif f.Answered(i) {\n\t\tatomic.AddUint32(&s.ask, 1)\n\t}\n", "\tif f.Answered(i) {\n\t\tatomic.AddUint32(&s.ask, 1)\n\t}\n\tatomic.StoreUint32(&s.op, uint32(op))\n"),
		file("order-left-unseen", "a signal is sent behind the end",
			"\tif atomic.LoadUint32(&f.h.left) != 0 {\n\t\tf.unsent(sig)\n\t\treturn unix.ESRCH\n\t}\n", ""),
		file("unsent-counted", "a signal that was not sent is awaited",
			"\tif e != 0 {\n\t\tf.unsent(sig)\n\t\treturn e\n", "\tif e != 0 {\n\t\treturn e\n"),
		file("slot-timer", "a slot with a timer is free",
			"\tif atomic.LoadUint32(&f.slots[i].timer) == 0 {\n\t\tatomic.StoreUint32(&f.slots[i].tid, 0)\n\t\treturn\n\t}\n\tf.dead", "\tif true {\n\t\tatomic.StoreUint32(&f.slots[i].tid, 0)\n\t\treturn\n\t}\n\tf.dead"),
		file("slot-again", "a slot keeps what its last thread left", "\t\t\t*s = slot{}\n", ""),
		file("order-reaping-early", "the probe is sent to an empty list",
			"\t\tif atomic.CompareAndSwapUint32(&f.h.reap[k], 0, uint32(f.dead[k])+1) {\n\t\t\tatomic.StoreUint32(&f.h.reaping, 1)\n\t\t}\n", "\t\tatomic.StoreUint32(&f.h.reaping, 1)\n\t\tatomic.CompareAndSwapUint32(&f.h.reap[k], 0, uint32(f.dead[k])+1)\n"),
		file("order-stack-torn", "a stack's start is there before its end",
			"\tatomic.StoreUint64(&s.high, high)\n\tatomic.StoreUint64(&s.low, low)\n",
			"\tatomic.StoreUint64(&s.low, low)\n\tatomic.StoreUint64(&s.high, high)\n"),
		ring("order-tail-early", "room is given back before it is read", "\tfor at := r.tail; at < head; {\n",
			"\tatomic.StoreUint64(&r.h.tail, head)\n\tfor at := r.tail; at < head; {\n"),
		ring("ring-bad-payload", "a payload may be of any size",
			" || raw.payloadSize > MaxPayload || ", " || "),
		ring("ring-old-head", "a head before the tail is a huge one",
			"\tif head-r.tail > RingSize { // not written by a probe\n\t\tr.Bad++\n\t\tr.tail = head\n\t}\n", ""),
	}
}

func protocolClient() []Fault {
	c, p := faultsOf("capi/sampler_amd64.c", clientWorlds), faultsOf("capi/copies_amd64.c", clientWorlds)
	check, guard := faultsOf("capi/check_amd64.c", clientWorlds), faultsOf("capi/guard_linux.c", guardTests)
	return []Fault{
		c("order-enter-closed", "a sampler that was closed meanwhile is entered",
			"\tif (sw_sampler_is_open())\n\t\treturn SEEDWALK_OK;\n\t__atomic_store_n(&inside, 0, __ATOMIC_SEQ_CST); /* closed meanwhile */\n\treturn SEEDWALK_NOT_OPEN;\n", "\treturn SEEDWALK_OK;\n"),
		c("order-close-at-once", "a close does not wait for a round",
			"\tfor (int ms = 0; ms < LONGEST_ROUND_MS && __atomic_load_n(&inside, __ATOMIC_SEQ_CST); ms++)\n\t\tsw_sleep_us(1000);\n", ""),
		c("close-no-stop", "a round goes on behind a close", "\tsw_stop(); /*", "\t; /*"),
		c("order-inside-early", "a second sample writes the first one's result",
			"\terr = sample(&q, &r);\n\tgive(result, &r);\n\t__atomic_store_n(&inside, 0, __ATOMIC_SEQ_CST);\n", "\t__atomic_store_n(&inside, 0, __ATOMIC_SEQ_CST);\n\terr = sample(&q, &r);\n\tgive(result, &r);\n"),
		c("order-opener-late", "the sampler is open before its opener is known",
			"\topener = sw_thread_self();\n\terr = start(&o);\n\t__atomic_store_n(&state, err ? CLOSED : OPEN, __ATOMIC_SEQ_CST);\n", "\terr = start(&o);\n\t__atomic_store_n(&state, err ? CLOSED : OPEN, __ATOMIC_SEQ_CST);\n\topener = sw_thread_self();\n"),
		c("order-begun-early", "Go's side counts as started before it is",
			"\tswgoSamplerBegin();\n\t__atomic_store_n(&begun, 1, __ATOMIC_SEQ_CST);\n",
			"\t__atomic_store_n(&begun, 1, __ATOMIC_SEQ_CST);\n\tswgoSamplerBegin();\n"),
		c("enter-opener", "the opener may sample", "if (self == opener || sw_thread_by_tid(self))",
			"if (sw_thread_by_tid(self))"),
		c("enter-managed", "a managed thread may sample",
			"if (self == opener || sw_thread_by_tid(self))", "if (self == opener)"),
		c("next-again", "a stack that was handed out is handed out again",
			"next_stack = q->on_stack ? sw_stack_count : 0;", "next_stack = 0;"),
		c("order-unload-at-once", "a module goes while its methods are named",
			"\tsw_unload();\n", ""),
		p("order-copy-early", "a copy is there before its stack",
			"\tfill(c);\n\t__atomic_store_n(&c->state, WHOLE, __ATOMIC_RELEASE);\n",
			"\t__atomic_store_n(&c->state, WHOLE, __ATOMIC_RELEASE);\n\tfill(c);\n"),
		p("order-copy-any", "a copy that is being made is taken",
			"__atomic_load_n(&copies[i].state, __ATOMIC_ACQUIRE) != WHOLE)",
			"__atomic_load_n(&copies[i].state, __ATOMIC_ACQUIRE) == FREE)"),
		p("order-copy-relaxed", "a copy is read before its state",
			"__atomic_load_n(&copies[i].state, __ATOMIC_ACQUIRE) != WHOLE)",
			"__atomic_load_n(&copies[i].state, __ATOMIC_RELAXED) != WHOLE)"),
		p("order-copy-taken-twice", "two threads take one slot",
			"__atomic_compare_exchange_n(&c->state, &none, FILLING, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))\n\t\t\treturn c;", "__atomic_load_n(&c->state, __ATOMIC_ACQUIRE) == none) {\n\t\t\t__atomic_store_n(&c->state, FILLING, __ATOMIC_RELEASE);\n\t\t\treturn c;\n\t\t}"),
		p("copy-not-counted", "a copy without room is not counted", "\t__atomic_add_fetch(&dropped, 1, __ATOMIC_RELAXED);\n", ""),
		p("copy-own-high", "a fiber's stack is the thread's own",
			"from >= c->stack_low && from < c->stack_high", "from >= c->stack_low"),
		check("check-once", "a callback in progress is an omission", "\t\twhat &= missing(all);\n",
			"\t\twhat |= missing(all);\n"),
		check("order-check-late", "a thread that begins meanwhile is an omission",
			"ours = sw_threads_copy(known, SW_THREADS);\n\tint n = enumerate(ENUM_THREADS, ids, SW_THREADS);\n", "ours = 0;\n\tint n = enumerate(ENUM_THREADS, ids, SW_THREADS);\n\tours = sw_threads_copy(known, SW_THREADS);\n"),
		guard("guard-others", "a handler that the program set since is replaced",
			"now.sa_sigaction == saved[s].sa_sigaction && ", ""),
	}
}

func protocolEngine() []Fault {
	loop, visit := faultsOf("sample/outside/engine_linux.go", outsideTests),
		faultsOf("sample/outside/visit_linux.go", outsideTests)
	timer, leave := faultsOf("sample/outside/timer_linux.go", outsideTests),
		faultsOf("sample/outside/leave_linux.go", outsideTests)
	follow := faultsOf("clr/tasks/follow.go", &Step{"./clr/tasks", nil})
	return []Fault{
		visit("order-ran-unseen", "a thread that ran meanwhile has stayed",
			"return ok && after == before && w ==", "return ok && (after == before || true) && w =="),
		visit("order-moved-unseen", "a thread that waits elsewhere has stayed",
			" && sp2 == sp && ip2 == ip\n", " && sp2+ip2 != 0\n"),
		visit("order-thread-late", "a Thread is read behind the second look",
			"\te.readThread(t, &c)\n\tif e.inProbe", "\tif e.inProbe").
			also("\t\te.backOff(t)\n\t\treturn c, false\n\t}\n\treturn c, true",
				"\t\te.backOff(t)\n\t\treturn c, false\n\t}\n\te.readThread(t, &c)\n\treturn c, true"),
		visit("order-unanswered", "a thread that has not answered is asked again",
			"t.Slot >= 0 && e.file.Answered(t.Slot)", "t.Slot >= 0"),
		visit("gone-slot", "the slot of an ended thread stays", "\te.file.Free(t.TID)\n", ""),
		visit("visit-extra", "a Thread that became known is not passed on",
			"\t\t\t\te.file.SetExtra(t.Slot, o)\n", "\t\t\t\t_ = o\n"),
		visit("visit-stack-bound", "the bounds of a stack are not passed on",
			"\te.file.SetStack(t.Slot, t.Low, t.High)\n", ""),
		visit("stack-of-fiber", "a main thread's bounds are those of a fiber",
			"case !main && base > sp", "case base > sp"),
		visit("order-asked-elsewhere", "a thread that sleeps elsewhere by now is sent a signal",
			"\t\tif !e.stayed(t, sp, ip, before) {", "\t\tif false {"),
		loop("order-ring-late", "threads are visited before their samples are read",
			"\te.readRing()\n\tif e.legacy", "\tif e.legacy").
			also("\te.Visits(e.dueBy(now), e.visit)\n", "\te.Visits(e.dueBy(now), e.visit)\n\te.readRing()\n"),
		loop("order-ending-late", "wall time of the last held samples waits for a later one",
			"\te.Ending = true\n\te.events.WalkPending()\n", "\te.events.WalkPending()\n\te.Ending = true\n"),
		loop("refresh-patch", "the probe does not know the new hijack stub",
			"\t\te.file.SetPatch(e.Walker.HijackStub)\n", ""),
		follow("order-late-activity", "an Activity is read after the last look at the thread",
			"c.follow(&e, object, EntryT", "o:=still(); c.follow(&e, object, EntryT").also("!still()", "!o"),
		follow("activity-again", "an Activity is that of the last look at the thread",
			"\tids := c.ids\n\tif ids", "\tif c.ids").also("\treturn ids\n", "\treturn c.ids\n"),
		engineFault("clr/objects/regions.go", "order-activity-moved", "an Activity is used though a collection has begun to move it",
			"\tread()\n\treturn !h.Changing()\n", "\tread()\n\treturn true\n", &Step{"./clr/objects", nil}),
		visit("order-gone-unread", "the last samples of a thread come behind its end",
			"\te.readRing()\n\te.readKernel()\n\te.gone(t)\n", "\te.gone(t)\n\te.readRing()\n"),
		loop("order-end-accounts", "a process is accounted for before its last samples",
			"\te.Ending = true\n", "\te.accountAll()\n\te.Ending = true\n").
			also("\te.last()\n\te.accountAll()\n", "\te.last()\n"),
		loop("asked-stays", "an answer is not seen", "\tcase probe.Asked:\n\t\tt.Asked = false\n", ""),
		loop("ignored-sum", "signals that were answered count as ignored", "\te.ignored = 0\n", ""),
		loop("record-bad-cut", "a stack that was cut is whole", "Cut: r.Flags&(probe.Cut) != 0, ", ""),
		loop("record-foreign-bounds", "a copy of another stack has the thread's bounds",
			"\t\tc.Low, c.High = 0, 0\n", ""),
		loop("held-lost", "the time of a held sample that needs registers is lost",
			"\t\tt.Unsampled += s.Wall\n\t\treturn\n", "\t\treturn\n"),
		visit("visit-no-room", "the time of a stack without room to hold it is lost", "\t\tt.Unsampled += s.Wall\n", ""),
		visit("visit-ran", "running time counts as blocked",
			"\t\tt.Ran += s.Passed\n", "\t\tt.Unsampled += s.Passed\n"),
		engineFault("sample/agent/agent.go", "order-pin-late", "a module goes between the events and the pin",
			"\ta.host.Pin()\n\ta.events()\n", "\ta.host.Pin()\n", &Step{"./sample/agent", nil}),
		timer("order-exec-unseen", "a signal is sent to another program", "\tif sig != e.legacy && !e.alive() {\n\t\treturn cannot\n\t}\n", ""),
		timer("order-pending", "a thread with a pending signal is sent another",
			"case !ok, masks.Pending&bit != 0:", "case !ok:"),
		timer("blocked-sent", "a thread that blocks the signal is sent it",
			"case ok && masks.Blocked&bit != 0:", "case false:"),
		timer("replace-event", "events of a signal that is given up stay",
			"\t\te.closeEvent(t)\n\t\tif t.Armed {", "\t\tif t.Armed {"),
		timer("slot-extra", "a new slot does not know its Thread", "\te.file.SetExtra(i, t.Thread)\n", ""),
		timer("relay-uncounted", "a relayed signal is not counted", "\t\te.Stats.Relayed++\n", ""),
		leave("order-end-late", "threads are asked to leave before the end is told",
			"\te.file.End()\n\tlimit", "\tlimit").
			also("\t\tif time.Now().After(limit) || !e.alive() {\n\t\t\treturn false\n\t\t}\n\t}\n}\n\n// askToLeave", "\t\te.file.End()\n\t\tif time.Now().After(limit) || !e.alive() {\n\t\t\treturn false\n\t\t}\n\t}\n}\n\n// askToLeave"),
		leave("order-leave-relist", "threads that came meanwhile are not asked", "\t\te.Relist()\n", ""),
		leave("leave-any", "a thread that was asked has left",
			"\t\tif e.left(50 * time.Millisecond) {\n\t\t\treturn true\n\t\t}\n", "\t\treturn true\n"),
	}
}
