package main

// The C as it stands under every order of its atomics, with the Go that shares its
// memory.
var (
	ringTests  = &Step{"./sample/probe", []string{"-run", "TestRingWorld"}}
	claimTests = &Step{"./sim/native", []string{"-run", "TestWorlds/claim"}}
	armTests   = &Step{"./sim/native", []string{"-run", "TestWorlds/arm"}}
	begunTests = &Step{"./stack/walk", []string{"-run", "TestBegun"}}
	copyTests  = &Step{"./stack/walk", []string{"-run", "TestCopiedWorlds|TestMethods"}}
	loadTests  = &Step{"./sim/rules", []string{"-run", "TestSnapshotLock"}}
)

const (
	commitStore = "\t__atomic_store_n(&r->commit, at | 1, __ATOMIC_RELEASE);\n"
	claimStore  = "\t\t\t__atomic_store_n(&r->claim, head | 2, __ATOMIC_RELEASE);\n"
	sizeStore   = "\t\t\tr->size = (uint32_t)size;\n"
)

// ringFaults are those of the probe's ring, of the claim of threads and of who is
// asked about: the C halves and the Go ones.
func ringFaults() []Fault {
	handler := faultsOf("sample/probe/src/handler.c", ringTests)
	claim := faultsOf("sample/probe/src/local.h", ringTests)
	reader := faultsOf("sample/probe/ring.go", slotTests, ringTests)
	threads := faultsOf("profiler/host/threads.c", claimTests)
	arm := faultsOf("sample/probe/src/handler.c", armTests)
	walk, rows := faultsOf("stack/walk/walk.go", copyTests), faultsOf("stack/walk/managed.go", copyTests)
	early := handler("ring-commit-early",
		"a record is committed before its stack is copied", commitStore+"}", "}")
	early.Also = []Edit{{"\tr->tid = s->tid;\n", commitStore + "\tr->tid = s->tid;\n"}}
	late := claim("ring-size-late", "a record is claimed before its size is written",
		sizeStore+claimStore, claimStore+sizeStore)
	return []Fault{
		early, late,
		handler("ring-commit-constant", "a commit does not name the position",
			"&r->commit, at | 1,", "&r->commit, 1,"),
		claim("ring-no-bound", "records are written over what was not read",
			"> SW_RING_SIZE)\n", "> 4ll * SW_RING_SIZE)\n"),
		claim("ring-not-masked", "a position is not brought into the ring",
			"(head & (SW_RING_SIZE - 1))", "head"),
		handler("ring-not-counted", "a dropped sample is not counted",
			"\t\t__atomic_fetch_add(&h->dropped, 1, __ATOMIC_RELAXED);\n", ""),
		claim("ring-claim-stores", "room is claimed by a store",
			"__atomic_compare_exchange_n(&h->head, &head, head + size, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)", "(__atomic_store_n(&h->head, head + size, __ATOMIC_RELEASE), 1)"),
		handler("ring-no-heartbeat", "the tool's heartbeat is not looked at",
			"time < beat || time - beat < h->stale", "time < beat || beat"),
		handler("ring-timers-stay", "timers of a tool that is gone stay",
			"\tdisarm_all(h);\n\treturn 1;", "\treturn 1;"),
		handler("ring-zone", "the red zone is not copied",
			"from = sp - SW_RED_ZONE, want", "from = sp, want"),
		arm("arm-end-late", "that a recording ends is said behind the end of its timers",
			"\tdisarm_all(h);\n\tif (first)\n\t\tsw_put_back(h);", "\tif (first)\n\t\tsw_put_back(h);"),
		rows("copy-patch", "what the runtime wrote over a return address is taken for one",
			"w.Regs.IP() == w.HijackStub && w.HijackStub != 0", "false"),
		walk("copy-called", "an interrupted thread is taken for one that has called",
			"\tw.at.Exact = !c.Called\n", "\tw.at.Exact = c.Called\n"),
		rows("copy-managed", "what a managed frame returns to is taken for managed code",
			"\t\tif !w.isManaged() {\n\t\t\treturn unwind.StopNone\n\t\t}\n", ""),
		walk("copy-newer", "code that is newer than the table ends a walk",
			"w.block[n-1].Module < 0 && w.isManaged()", "w.block[n-1].Module < 0 && false"),
		engineFault("stack/walk/walk.go", "begun-kept", "a handler that has not begun is kept",
			"\t\tframes = frames[2:]\n\t\tw.SkippedHandlers++\n", "\t\tbreak\n", begunTests),
		engineFault("stack/walk/walk.go", "begun-all", "a handler that is at work is left out",
			"; !ok || ra != frames[1].IP {", "; !ok || ra == 0 {", begunTests),
		reader("ring-any-commit", "any commit counts, a lap's before too",
			"atomic.LoadUint64(&rec.commit) == at|1", "atomic.LoadUint64(&rec.commit)&1 == 1"),
		reader("ring-any-claim", "any claim counts, a lap's before too",
			"atomic.LoadUint64(&rec.claim) != at|2", "atomic.LoadUint64(&rec.claim)&2 == 0"),
		reader("ring-not-round", "a record that goes round the end is cut",
			"\tcopy(b[n:], r.ring)\n", "\t_ = n\n"),
		reader("ring-room-early", "the room of one who is interrupted is given away",
			"\t\t\tr.Stuck++\n", "\t\t\tr.done[at] = size\n"),
		reader("ring-twice", "a record behind an interrupted one is read again",
			"_, seen := r.done[at]; !seen && committed", "_, seen := r.done[at]; committed"),
		reader("ring-no-tail", "room is never given back", "\tatomic.StoreUint64(&r.h.tail, r.tail)\n", ""),
		threads("claim-late", "a claim is told after the thread was looked at",
			"\t__atomic_store_n(&claimed, thread_id, __ATOMIC_SEQ_CST);\n\tif (sw_thread_alive(thread_id, tid))\n\t\treturn 1;", "\tif (sw_thread_alive(thread_id, tid)) {\n\t\t__atomic_store_n(&claimed, thread_id, __ATOMIC_SEQ_CST);\n\t\treturn 1;\n\t}"),
		engineFault("stack/snapshot/threads.go", "loading-asked",
			"the CLR is asked about a thread in the loader", "\tif c.Loading {", "\tif c.Loading && false {",
			&Step{"./stack/snapshot", nil}, loadTests),
		engineFault("stack/snapshot/threads.go", "broken-kept", "a sample of a thread that ran on is kept",
			"\tcase c.Broken:\n\t\to.Advice = AdviceLost\n", "", &Step{"./stack/snapshot", nil}),
		engineFault("clr/managed/specials.go", "loading-below",
			"only the topmost function counts as the loader",
			"\t\tif s.Loader.holds(frames[i].Lookup()) {\n\t\t\treturn true\n\t\t}\n", "\t\t_ = i\n",
			&Step{"./clr/managed", nil}, loadTests),
	}
}
