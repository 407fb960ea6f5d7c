//go:build linux && amd64

package native

import "strings"

const (
	releaseCommit = "__atomic_store_n(&r->commit, at | 1, __ATOMIC_RELEASE)"
	leftAgain     = "\tif (__atomic_load_n(&h->left, __ATOMIC_SEQ_CST))"
	torn          = "made of two"
	timerLeft     = "a timer is left"
	another       = "another"
	claimEntry    = " || !__atomic_compare_exchange_n(&h->reap[i], &at, at | SW_REAPED, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))"
	nextEnded     = "next thread is ended"
	killed        = "ends the process"
	beyond        = "more than the thread's stack"
)

// endings are the outcomes of a signal that the tool may send while a recording ends: whether the signal was
// sent and taken, and whether the old signal handler was put back.
var endings = []string{"not sent, kept", "not sent, put back", "taken, kept", "taken, put back"}

// oldTool sends the signal without looking whether the recording has ended.
var oldTool = fault{"the tool does not look (the old source)", "CHECKS=0", nil, killed}

// lateTool counts the signal after it has looked.
var lateTool = fault{"the tool counts late", "LATE=1", nil, killed}

// lateHandler lists the races of a signal handler that runs while a recording is set up. These races are
// harmless: such a handler finds no slot and does nothing.
var lateHandler = []string{"begin plain - sw_slot_of atomic", "end_if_asked plain - sim_sys6 atomic",
	"find plain - sim_sys6 atomic", "find plain - sw_describe plain"}

// lateRelay are the races of a relay that runs while the next recording takes its signals. It may leave these
// signals blocked in its thread, as they were.
var lateRelay = []string{"sw_signals plain - take_signals plain"}

// waitRaces are the reader's: it copies an entry that is being written, and throws such a copy away.
var waitRaces = []string{"opened plain - read_waits atomic", "read_waits atomic - sim_copy plain"}

// probeWorlds are the worlds of the probe.
var probeWorlds = []world{
	{name: "a signal by the relay, the recording ends", file: "unrelay",
		defines: []string{"BY_RELAY=1", "AGAIN=0"}, outcomes: endings, faults: []fault{
			oldTool, lateTool,
			{"relay_sent is read with acquire", "relay.c",
				[][2]string{{"__atomic_load_n(&h->relay_sent, __ATOMIC_SEQ_CST)",
					"__atomic_load_n(&h->relay_sent, __ATOMIC_ACQUIRE)"}}, killed},
		}},
	{name: "a signal by the relay, another handler", file: "unrelay",
		defines:  []string{"BY_RELAY=1", "AGAIN=0", "OTHER=1"},
		outcomes: []string{"not sent, put back", "taken, put back"}, faults: []fault{
			{"another handler is replaced", "relay.c",
				[][2]string{{" || a.handler != (uint64_t)relay)\n\t\treturn;\n\ta.handler = runtimes",
					")\n\t\treturn;\n\ta.handler = runtimes"}}, "another handler"},
		}},
	{name: "a signal by the relay, another recording", file: "unrelay",
		defines: []string{"BY_RELAY=1", "AGAIN=1"}, outcomes: endings, races: lateRelay, faults: []fault{
			{"the next recording forgets it (the old source)", "relay.c",
				[][2]string{{"\tif (stays ||", "\tif ("}, {"\t\tstays = 1;\n", "\t\treturn;\n"}}, killed},
		}},
	{name: "a signal by the relay, it ends the recording", file: "unrelay",
		defines:  []string{"BY_RELAY=1", "AGAIN=0", "LEAVES=1"},
		outcomes: []string{"taken, put back"}, faults: []fault{
			{"relayed is counted after the handler", "relay.c", [][2]string{
				{"\t__atomic_fetch_add(&h->relayed, 1, __ATOMIC_ACQ_REL);\n", ""},
				{"\tsw_handler(sig, si, uc);\n}", "\tsw_handler(sig, si, uc);\n\t__atomic_fetch_add(&h->relayed, 1, __ATOMIC_ACQ_REL);\n}"}}, "stays"},
		}},
	{name: "a real-time signal, the recording ends", file: "unrelay",
		defines: []string{"BY_RELAY=0", "AGAIN=0"}, outcomes: endings[:3], faults: []fault{
			oldTool, lateTool,
			{"real_sent is read with acquire", "start.c",
				[][2]string{{"__atomic_load_n(&h->real_sent, __ATOMIC_SEQ_CST)",
					"__atomic_load_n(&h->real_sent, __ATOMIC_ACQUIRE)"}}, killed},
		}},
	{name: "a real-time signal, another recording", file: "unrelay",
		defines: []string{"BY_RELAY=0", "AGAIN=1"}, outcomes: endings[:3], faults: []fault{
			{"the next recording forgets it (the old source)", "start.c",
				[][2]string{{"\tif (parked == (int)h->real_time)\n\t\ta.handler",
					"\tif (h->real_sent)\n\t\ta.handler"}}, killed},
		}},
	{name: "a real-time signal of a timer", file: "unrelay",
		defines: []string{"BY_RELAY=0", "AGAIN=0", "TIMER=1"}, outcomes: []string{"taken, kept"},
		faults: []fault{
			{"only the tool's signals are ignored", "start.c",
				[][2]string{{" || h->timer_signal == h->real_time)", ")"}}, killed},
		}},
	{name: "another recording, the tool is gone", file: "restart", defines: []string{"LEFT=0"},
		outcomes: []string{"begins", "does not begin"}, races: lateHandler,
		faults: []fault{
			{"handlers are not waited for (the old source)", "start.c",
				[][2]string{{"\tif (!sw_wait_out())\n\t\treturn 0;\n", ""}}, another},
			{"a handler looks before it is counted", "handler.c", [][2]string{
				{"\t__atomic_fetch_add(&inside, 1, __ATOMIC_SEQ_CST);\n\tstruct sw_header *h = sw_shared;\n\tif (h && !__atomic_load_n(&h->left, __ATOMIC_SEQ_CST))\n",
					"\tstruct sw_header *h = sw_shared;\n\tint on = h && !__atomic_load_n(&h->left, __ATOMIC_SEQ_CST);\n\t__atomic_fetch_add(&inside, 1, __ATOMIC_SEQ_CST);\n\tif (on)\n"}}, another},
			{"inside is counted down relaxed", "handler.c",
				weaken("__atomic_fetch_sub(&inside, 1, __ATOMIC_RELEASE)"), "race"},
		}},
	{name: "another recording, the last one has ended", file: "restart", defines: []string{"LEFT=1"},
		outcomes: []string{"begins", "does not begin"}, races: lateHandler,
		faults: []fault{
			{"a handler does not look whether the recording has ended (the old source)", "handler.c",
				[][2]string{{"h && !__atomic_load_n(&h->left, __ATOMIC_SEQ_CST)", "h"}}, another},
		}},
	{name: "another recording, a session is ending", file: "restart",
		defines: []string{"LEFT=1", "SESSION=1"}, outcomes: []string{"does not begin"}},
	{name: "another recording, the tool lives", file: "restart", defines: []string{"LEFT=0", "LIVES=1"},
		outcomes: []string{"does not begin"},
		faults: []fault{
			{"a living tool is not seen", "start.c",
				[][2]string{{"\tif (h && !h->left && sw_tool_lives(h, h->stale))\n\t\treturn 0;", "\tif (0)\n\t\treturn 0;"}}, ""},
			{"an end that is asked early is forgotten", "start.c",
				[][2]string{{"\tif (h && (e || h->ending))", "\tif (h && e)"}}, "while it begins"},
		}},
	{name: "session, no thread ends it", file: "ended", defines: []string{"NONE=1"},
		outcomes: []string{"at once"}},
	{name: "session, its end comes late", file: "ended", outcomes: []string{"at once", "later"},
		faults: []fault{
			{"helper is set by the thread itself (the old source)", "session.c",
				[][2]string{{"\t__atomic_store_n(&h->helper, BEING_MADE, __ATOMIC_RELEASE);\n", ""}},
				"a session is ended twice"},
			{"the end is said before it", "session.c", [][2]string{
				{"\t((hresult (*)(void *, uint64_t))method(mine, INFO_STOP))(mine, my_session);\n\t__atomic_store_n(&h->session, 2, __ATOMIC_RELEASE); /* another recording's header may be here next */\n",
					"\t__atomic_store_n(&h->session, 2, __ATOMIC_RELEASE);\n\t((hresult (*)(void *, uint64_t))method(info, INFO_STOP))(info, session + 0 * my_session);\n"}}, "a session is ended twice"},
		}},
	{name: "arm, the recording ends", file: "arm", defines: []string{"ENDS=1"},
		outcomes: []string{"no timer", "one timer"},
		races:    []string{"arm plain - disarm atomic"},
		faults: []fault{
			{"release and acquire (the old source)", "handler.c", [][2]string{
				{"(uint32_t)id + 1, __ATOMIC_SEQ_CST", "(uint32_t)id + 1, __ATOMIC_RELEASE"},
				{leftAgain, strings.Replace(leftAgain, "SEQ_CST", "ACQUIRE", 1)},
				{"__atomic_exchange_n(&s->timer, 0, __ATOMIC_SEQ_CST)",
					"__atomic_exchange_n(&s->timer, 0, __ATOMIC_ACQ_REL)"},
				{"SW_LEAVING, 0, __ATOMIC_SEQ_CST", "SW_LEAVING, 0, __ATOMIC_ACQ_REL"}}, timerLeft},
			{"left is read with acquire", "handler.c",
				[][2]string{{leftAgain, strings.Replace(leftAgain, "SEQ_CST", "ACQUIRE", 1)}}, timerLeft},
			{"left is not read again", "handler.c", [][2]string{{leftAgain, "\tif (0)"}}, timerLeft},
			{"timers end before the recording does", "handler.c",
				[][2]string{{"\tint first = __atomic_compare",
					"\tdisarm_all(h);\n\tint first = __atomic_compare"},
					{"__ATOMIC_RELAXED);\n\tdisarm_all(h);\n\tif (first)",
						"__ATOMIC_RELAXED);\n\tif (first)"}}, timerLeft},
		}},
	{name: "arm, the recording ends on any thread", file: "arm", defines: []string{"ENDS=1", "ANY=1"},
		outcomes: []string{"no timer", "one timer"},
		races: []string{"arm plain - disarm atomic", "end_if_asked plain - sw_end atomic",
			"end_if_asked plain - sw_put_back atomic"},
		faults: []fault{
			{"two threads put back what was changed", "handler.c",
				[][2]string{{"\tif (first)\n\t\tsw_put_back(h);", "\t(void)first;\n\tsw_put_back(h);"}},
				"put back twice"},
		}},
	{name: "arm, the tool dies", file: "arm", defines: []string{"ENDS=0"},
		outcomes: []string{"one timer", "two timers"},
		races: []string{"abandoned plain - arm atomic",
			"abandoned plain - disarm atomic", "arm plain - disarm atomic"},
		faults: []fault{
			{"the heartbeat is not read again", "handler.c",
				[][2]string{{"\t\tdisarm(h, s);\n\telse\n\t\tabandoned(h, now());",
					"\t\tdisarm(h, s);"}}, timerLeft},
			{"a timer is taken by load and store", "handler.c",
				[][2]string{{"uint32_t t = __atomic_exchange_n(&s->timer, 0, __ATOMIC_SEQ_CST);",
					"uint32_t t = __atomic_load_n(&s->timer, __ATOMIC_SEQ_CST);\n\t__atomic_store_n(&s->timer, 0, __ATOMIC_SEQ_CST);"}}, "a timer is deleted that does not exist"},
		}},
	{name: "a read of two threads", file: "reads", outcomes: []string{"first", "none", "second"},
		faults: []fault{
			{"a read is done before its size is there", "read.c", [][2]string{
				{"\t\tr->got = (uint32_t)answer(r, room(h, i));\n",
					"\t\tuint32_t got = (uint32_t)answer(r, room(h, i));\n"},
				{"\t\tsys3(NR_futex, P(&r->state), FUTEX_WAKE, 1);\n",
					"\t\tr->got = got;\n\t\tsys3(NR_futex, P(&r->state), FUTEX_WAKE, 1);\n"}},
				"another read"},
			{"a read is done relaxed", "read.c",
				weaken("SW_READ_ASKED + SW_READ_DONE, __ATOMIC_RELEASE)"), "race"},
			{"a withdrawn read is answered", "read.c",
				[][2]string{{"if (!__atomic_compare_exchange_n(&r->state, &state, state - SW_READ_ASKED + SW_READ_TAKEN, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))\n\t\t\tcontinue;", "__atomic_store_n(&r->state, state - SW_READ_ASKED + SW_READ_TAKEN, __ATOMIC_RELEASE);"}}, "another read"},
		}},
	{name: "signals one by one", file: "signals", outcomes: []string{""},
		faults: []fault{
			{"the process is restored before its timers end", "handler.c",
				[][2]string{{"\tdisarm_all(h);\n\tif (first)\n\t\tsw_put_back(h);\n",
					"\tif (first)\n\t\tsw_put_back(h);\n\tdisarm_all(h);\n"}}, "before its timers end"},
			{"a tick that carries a request is no tick (the old source)", "handler.c",
				[][2]string{{"si->code == SI_TIMER && !abandoned(h, entry))\n\t\tticked",
					"!asked && si->code == SI_TIMER && !abandoned(h, entry))\n\t\tticked"}}, "is lost"},
		}},
	{name: "bounds of a stack", file: "bounds", defines: []string{"ALT=0"},
		outcomes: []string{"checked", "without a check"},
		faults: []fault{
			{"the start is read twice", "handler.c",
				[][2]string{{"low && !alt && from >= low", "low && from >= s->low"}}, "race"},
		}},
	{name: "bounds of a stack, on the alternate one", file: "bounds", defines: []string{"ALT=1"},
		outcomes: []string{"checked", "without a check"},
		faults: []fault{
			{"a main thread has a fiber's bounds (the old source)", "FIBER=1", nil, beyond},
			{"the tool stores the end late", "LATE=1", nil, beyond},
			{"the start is read relaxed", "handler.c",
				weaken("__atomic_load_n(&s->low, __ATOMIC_ACQUIRE)"), beyond},
			{"bounds are plain (the old source)", "handler.c", [][2]string{
				{"__atomic_load_n(&s->low, __ATOMIC_ACQUIRE)", "s->low"},
				{"__atomic_load_n(&s->high, __ATOMIC_RELAXED)", "s->high"}}, "race"},
		}},
	{name: "two requests", file: "ask", defines: []string{"ONE=0"}, outcomes: []string{"armed", "sampled"},
		races: []string{"ask atomic - obey plain"}},
	{name: "a request and an event", file: "ask", defines: []string{"ONE=1"}, outcomes: []string{"armed"},
		races: []string{"ask atomic - find plain"},
		faults: []fault{
			{"the operation is written late", "LATE=1", nil, "another operation"},
			{"the answer comes early", "handler.c", [][2]string{{"\t\tobey(h",
				"\t\t__atomic_store_n(&s->answered, ask, __ATOMIC_RELEASE);\n\t\tobey(h"}},
				"answered early"},
			{"the answer is published relaxed", "handler.c",
				weaken("__atomic_store_n(&s->answered, ask, __ATOMIC_RELEASE)"), "race"},
			{"the operation is read early", "handler.c",
				[][2]string{{"uint32_t ask = __atomic_load_n(&s->ask, __ATOMIC_ACQUIRE);",
					"uint32_t ask = __atomic_load_n(&s->ask, __ATOMIC_RELAXED);"}}, "race"},
		}},
	{name: "a thread's next event", file: "clock", outcomes: []string{"ignored", "sampled"},
		faults: []fault{
			{"the clock is read again (the old source)", "handler.c",
				[][2]string{{"\tif (clock & SW_CLOCK_FIRST)\n", "\tclock = __atomic_load_n(&s->clock, __ATOMIC_ACQUIRE);\n\tif (clock & SW_CLOCK_FIRST)\n"}}, "event is lost"},
			{"the first overflow is noted by a store", "handler.c",
				[][2]string{{"__atomic_compare_exchange_n(&s->clock, &clock, clock & ~(uint32_t)SW_CLOCK_FIRST, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED)", "__atomic_store_n(&s->clock, clock & ~(uint32_t)SW_CLOCK_FIRST, __ATOMIC_RELAXED)"}}, "event is lost"},
		}},
	{name: "a slot's next thread", file: "reap", defines: []string{"REAPERS=1", "CALLS=2", "DEAD=1"},
		outcomes: []string{"given", "not yet"},
		faults: []fault{
			{"the tool does not look (the old source)", "LOOKS=0", nil, nextEnded},
		}},
	{name: "a slot's next thread, two handlers", file: "reap",
		defines: []string{"REAPERS=2", "CALLS=1", "DEAD=2"}, outcomes: []string{"given", "not yet"},
		faults: []fault{
			{"an entry has no owner (the old source)", "handler.c",
				[][2]string{{claimEntry, ")"}}, nextEnded},
			{"an entry is taken, not marked", "handler.c",
				[][2]string{{"at | SW_REAPED, 0, __ATOMIC_ACQUIRE", "0, 0, __ATOMIC_ACQUIRE"}}, nextEnded},
			{"an entry is announced before it is there", "LATE=0", nil, "is forgotten"},
			{"entries that come meanwhile are not announced", "handler.c",
				[][2]string{{"\t\t__atomic_store_n(&h->reap[i], 0, __ATOMIC_RELEASE);\n\t}\n",
					"\t\t__atomic_store_n(&h->reap[i], 0, __ATOMIC_RELEASE);\n\t}\n\t__atomic_store_n(&h->reaping, 0, __ATOMIC_RELEASE);\n"}}, "is forgotten"},
		}},
	{name: "open waits", file: "waits", defines: []string{"NO_STOP=0"},
		outcomes: []string{"changed", "first", "none", "second"}, races: waitRaces,
		faults: []fault{
			{"the time is not read again", "SINCE=0", nil, torn},
			{"an event without room is not counted", "copy.c",
				[][2]string{{"\t\t__atomic_fetch_add(&h->missed, 1, __ATOMIC_RELAXED);\n", ""}},
				"without room"},
			{"since is written first (the old source)", "events.c", [][2]string{
				{"\t__atomic_store_n(&o->since, 0, __ATOMIC_RELAXED);\n\t__atomic_thread_fence(__ATOMIC_RELEASE);\n", "\t__atomic_store_n(&o->since, time, __ATOMIC_RELAXED);\n"},
				{"\t__atomic_store_n(&o->since, time, __ATOMIC_RELEASE);\n", ""}}, torn},
			{"no fence behind the 0", "events.c",
				[][2]string{{"\t__atomic_thread_fence(__ATOMIC_RELEASE);\n", ""}}, torn},
			{"the time is published relaxed", "events.c",
				weaken("__atomic_store_n(&o->since, time, __ATOMIC_RELEASE)"), torn},
			{"the payload comes last", "events.c", [][2]string{
				{"\tsw_copy(o->payload, P(payload), o->size);\n", ""},
				{"\t__atomic_store_n(&o->since, time, __ATOMIC_RELEASE);\n",
					"\t__atomic_store_n(&o->since, time, __ATOMIC_RELEASE);\n\tsw_copy(o->payload, P(payload), o->size);\n"}}, torn},
		}},
	{name: "open waits of two threads", file: "waits", defines: []string{"NO_STOP=0", "OTHER=1"},
		outcomes: []string{"changed", "first", "none", "second"},
		faults: []fault{
			{"a lock's wait is inside itself", "events.c",
				[][2]string{{"*inner = i > 1 && w->open[i - 2].id", "*inner = i > 0 && w->open[i - 1].id"}},
				"finds another wait"},
			{"the owner is not read again", "OWNER=0", nil, "another thread's number"},
			{"two threads take one place", "events.c",
				[][2]string{{"if (__atomic_compare_exchange_n(&w->tid, &none, tid, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))\n\t\t\treturn w;", "if (__atomic_load_n(&w->tid, __ATOMIC_ACQUIRE) == none) {\n\t\t\t__atomic_store_n(&w->tid, tid, __ATOMIC_RELAXED);\n\t\t\treturn w;\n\t\t}"}}, ""},
			{"a place is free before its last wait is closed", "events.c",
				[][2]string{{"\t\t__atomic_store_n(&w->depth, i - 1, __ATOMIC_RELEASE);\n\t\tif (i == 1)\n\t\t\t__atomic_store_n(&w->tid, 0, __ATOMIC_RELEASE);\n", "\t\tif (i == 1)\n\t\t\t__atomic_store_n(&w->tid, 0, __ATOMIC_RELEASE);\n\t\t__atomic_store_n(&w->depth, i - 1, __ATOMIC_RELEASE);\n"}}, ""},
			{"a wait counts before it is written", "events.c", [][2]string{
				{"\t__atomic_store_n(&w->depth, depth + 1, __ATOMIC_RELEASE);\n", ""},
				{"\tstruct sw_open *o = &w->open[depth];\n",
					"\tstruct sw_open *o = &w->open[depth];\n\t__atomic_store_n(&w->depth, depth + 1, __ATOMIC_RELEASE);\n"}}, ""},
		}},
	{name: "open waits, a stop never came", file: "waits", defines: []string{"NO_STOP=1"},
		outcomes: []string{"changed", "first", "none", "second"}, races: waitRaces,
		faults: []fault{
			{"a wait without a stop stays open", "events.c",
				[][2]string{{"\t\t\tdepth = i;\n", "\t\t\tdepth += 0;\n"}}, "an open wait is lost"},
			{"the entry is not marked", "events.c",
				[][2]string{{"\t__atomic_store_n(&o->since, 0, __ATOMIC_RELAXED);\n", ""}}, torn},
		}},
	{name: "ring, round the end", file: "ring", outcomes: []string{"2 read, 0 dropped"},
		faults: []fault{
			{"commit relaxed", "handler.c", weaken(releaseCommit), "race"},
			{"claim told relaxed", "local.h",
				weaken("__atomic_store_n(&r->claim, head | 2, __ATOMIC_RELEASE)"),
				"no record can be there"},
			{"size is written behind the claim", "local.h",
				[][2]string{{"\t\t\tr->size = (uint32_t)size;\n\t\t\t__atomic_store_n(&r->claim, head | 2, __ATOMIC_RELEASE);\n", "\t\t\t__atomic_store_n(&r->claim, head | 2, __ATOMIC_RELEASE);\n\t\t\tr->size = (uint32_t)size;\n"}}, "no record can be there"},
			{"room is taken by a store", "local.h",
				[][2]string{{"__atomic_compare_exchange_n(&h->head, &head, head + size, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)", "(__atomic_store_n(&h->head, head + size, __ATOMIC_RELEASE), 1)"}}, "lost"},
			{"the commit names no position", "handler.c",
				[][2]string{{"&r->commit, at | 1,", "&r->commit, 1,"}}, "lost"},
		}},
	{name: "ring, an event", file: "ring", defines: []string{"EVENT=1"},
		outcomes: []string{"2 read, 0 dropped"},
		faults: []fault{
			{"an event is committed relaxed", "copy.c", weaken(releaseCommit), "race"},
			{"an event is committed before its flags", "copy.c",
				[][2]string{{"\tr->flags = (uint16_t)flags;\n",
					"\t__atomic_store_n(&r->commit, at | 1, __ATOMIC_RELEASE);\n\tr->flags = (uint16_t)flags;\n"}},
				"race"},
		}},
	{name: "ring, full", file: "ring", defines: []string{"FREE=SIZE"},
		outcomes: []string{"1 read, 1 dropped", "2 read, 0 dropped"},
		faults: []fault{
			{"a dropped sample is not counted", "handler.c",
				[][2]string{{"&h->dropped, 1, __ATOMIC", "&h->dropped, 0, __ATOMIC"}}, "lost"},
			{"no bound", "local.h",
				[][2]string{{"> SW_RING_SIZE)\n", "> 4ll * SW_RING_SIZE)\n"}}, "more is claimed"},
		}},
	{name: "objects, a collection begins", file: "rules", defines: []string{"MOVES=1"},
		outcomes: []string{"found", "moved"},
		faults: []fault{
			{"a collection that begins during the search", "objects.c",
				[][2]string{{"moved || (n && changing(h))", "moved"}}, "for another"},
			{"a collection that has begun before", "objects.c",
				[][2]string{{"int moved = changing(h), n", "int moved = 0, n"},
					{"(n && changing(h))", "(!n && changing(h))"}}, "for another"},
		}},
	{name: "a rule of objects", file: "rules", defines: []string{"MOVES=0"},
		outcomes: []string{"found", "none"},
		faults: []fault{
			{"a rule is read before its type", "objects.c",
				weaken("__atomic_load_n(&r->table, __ATOMIC_ACQUIRE)"), "race"},
		}},
	{name: "dropped events of one type", file: "types", defines: []string{"SAME=1"},
		outcomes: []string{"named", "named named"},
		faults: []fault{
			{"size is written relaxed", "dropped.c",
				weaken("__atomic_store_n(&t->size, n + 1, __ATOMIC_RELEASE)"), "race"},
			{"the place is taken by a store", "dropped.c",
				[][2]string{{"__atomic_compare_exchange_n(&t->key, &was, key, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED)", "(__atomic_store_n(&t->key, key, __ATOMIC_RELAXED), 1)"}}, "race"},
			{"events are counted by load and store", "dropped.c",
				[][2]string{{"__atomic_fetch_add(&t->count, 1, __ATOMIC_RELAXED)",
					"__atomic_store_n(&t->count, __atomic_load_n(&t->count, __ATOMIC_RELAXED) + 1, __ATOMIC_RELAXED)"}}, "other bytes than events"},
		}},
	{name: "dropped events of two types", file: "types", defines: []string{"SAME=0"},
		outcomes: []string{"named named", "named named named", "named named named named"},
		faults: []fault{
			{"the name is written behind its size", "dropped.c", [][2]string{
				{"\t\tsw_copy(t->name, (uint64_t)(uintptr_t)name, n);\n", ""},
				{"\t\t__atomic_store_n(&t->size, n + 1, __ATOMIC_RELEASE);\n",
					"\t\t__atomic_store_n(&t->size, n + 1, __ATOMIC_RELEASE);\n\t\tsw_copy(t->name, (uint64_t)(uintptr_t)name, n);\n"}}, "name of a type"},
		}},
	{name: "ring, two reads", file: "ring", defines: []string{"READS=2"},
		outcomes: []string{"2 read, 0 dropped"}, long: true},
	{name: "ring, full, two reads", file: "ring", defines: []string{"FREE=SIZE", "READS=2"},
		outcomes: []string{"1 read, 1 dropped", "2 read, 0 dropped"}, long: true},
	{name: "ring, two samples each", file: "ring", defines: []string{"SAMPLES=2"},
		outcomes: []string{"4 read, 0 dropped"}, long: true, limit: 1_000_000},
	{name: "ring, three threads", file: "ring", defines: []string{"SAMPLERS=3"},
		outcomes: []string{"3 read, 0 dropped"}, long: true, limit: 1_000_000},
}
