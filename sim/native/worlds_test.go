//go:build linux && amd64

package native

import (
	"flag"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"slices"
	"strings"
	"testing"
)

// world is a file of worlds/ with its parameters.
type world struct {
	name, file string
	from       string // the folder of the product's sources, "": the probe's
	defines    []string
	outcomes   []string // all of them
	races      []string // known data races; each involves a plain access
	faults     []fault  // changes of the product that the world finds
	limit      int      // executions, 0: two million
	long       bool     // only with -explore
	arm64      bool     // compiled for ARM64
}

// fault is a change of the product's source. A file with "=" in it is a macro of the world instead.
type fault struct {
	name, file string
	edits      [][2]string // a text that occurs once, and what replaces it; or "@offset" and "old>new"
	finds      string      // in the first failure; "race": a data race that the world has not else
}

var long = flag.Bool("explore", false, "explore the large worlds too, and weaken every memory order")

const (
	host          = "profiler/host"
	client        = "capi/client/src"
	library       = "capi"
	releaseCommit = "__atomic_store_n(&r->commit, at | 1, __ATOMIC_RELEASE)"
	leftAgain     = "\tif (__atomic_load_n(&h->left, __ATOMIC_SEQ_CST))"
	gone          = "DoStackSnapshot of a thread that is gone"
	torn          = "made of two"
	timerLeft     = "a timer is left"
	another       = "another"
	claimEntry    = " || !__atomic_compare_exchange_n(&h->reap[i], &at, at | SW_REAPED, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))"
	nextEnded     = "next thread is ended"
	killed        = "ends the process"
	beyond        = "more than the thread's stack"
	anotherID     = "the id of another"
)

// endings are of a signal that the tool sends while a recording ends.
var endings = []string{"not sent, kept", "not sent, put back", "taken, kept", "taken, put back"}

// oldTool sends the signal without looking whether the recording has ended.
var oldTool = fault{"the tool does not look (the old source)", "CHECKS=0", nil, killed}

// lateTool counts the signal after it has looked.
var lateTool = fault{"the tool counts late", "LATE=1", nil, killed}

// lateHandler are the races of a handler that runs while a recording is set up. It is of none and
// finds no slot.
var lateHandler = []string{"begin plain - sw_slot_of atomic", "end_if_asked plain - sim_sys6 atomic",
	"find plain - sim_sys6 atomic", "find plain - sw_describe plain"}

// lateRelay are the races of a relay that runs while the next recording takes its signals. It may leave these
// signals blocked in its thread, as they were.
var lateRelay = []string{"sw_signals plain - take_signals plain"}

// weaken returns the edit that makes an operation relaxed.
func weaken(operation, order string) [][2]string {
	return [][2]string{{operation, strings.Replace(operation, order, "__ATOMIC_RELAXED", 1)}}
}

var (
	plainDead = fault{"dead is cleared by a plain store (the old source)", "threads.c",
		[][2]string{{"__atomic_store_n(&t->dead, 0, __ATOMIC_RELEASE)", "t->dead = 0"}}, gone}
	tidFirst = fault{"tid is read before dead (the first source)", "threads.c",
		[][2]string{{"!__atomic_load_n(&t->dead, __ATOMIC_SEQ_CST) && __atomic_load_n(&t->tid, __ATOMIC_SEQ_CST) == tid", "__atomic_load_n(&t->tid, __ATOMIC_SEQ_CST) == tid && !__atomic_load_n(&t->dead, __ATOMIC_SEQ_CST)"}}, gone}
	noLastLook = fault{"thread_id is not read again", "threads.c",
		[][2]string{{" &&\n\t       __atomic_load_n(&t->thread_id, __ATOMIC_SEQ_CST) == thread_id", ""}}, gone}
	weakDead = fault{"dead is set with release", "threads.c",
		[][2]string{{"__atomic_store_n(&t->dead, 1, __ATOMIC_SEQ_CST)",
			"__atomic_store_n(&t->dead, 1, __ATOMIC_RELEASE)"}}, gone}
	weakClaim = fault{"claimed is set with release", "threads.c",
		[][2]string{{"__atomic_store_n(&claimed, thread_id, __ATOMIC_SEQ_CST)",
			"__atomic_store_n(&claimed, thread_id, __ATOMIC_RELEASE)"}}, gone}
	noWait = fault{"the end of a thread does not wait for its walk", "threads.c",
		[][2]string{{"\twait_for_sampler(thread_id);\n\t__atomic_store_n(&t->tid, 0, __ATOMIC_RELEASE);",
			"\t__atomic_store_n(&t->tid, 0, __ATOMIC_RELEASE);"}}, gone}
)

// waitRaces are the reader's: it copies an entry that is being written, and throws such a copy away.
var waitRaces = []string{"opened plain - read_waits atomic", "read_waits atomic - sim_copy plain"}

var worlds = []world{
	{name: "claim, new numbers", file: "claim", from: host, defines: []string{"NEXT_ID=2", "NEXT_TID=12"},
		outcomes: []string{"refused", "walked"},
		faults: []fault{noWait, weakDead, weakClaim,
			{"an entry is free before its thread is unbound", "threads.c",
				[][2]string{{"\tsw_thread_unbind(t);\n\t__atomic_store_n(&t->thread_id, 0, __ATOMIC_RELEASE);\n", "\t__atomic_store_n(&t->thread_id, 0, __ATOMIC_RELEASE);\n\tsw_thread_unbind(t);\n"}}, "has lost its handle"},
			{"an entry keeps its name", "threads.c",
				[][2]string{{"\t\tt->name[0] = 0;\n", ""}}, "name of the one before"},
		}},
	{name: "claim, the system's number again", file: "claim", from: host,
		defines: []string{"NEXT_ID=2", "NEXT_TID=11"}, outcomes: []string{"refused", "walked"},
		faults: []fault{plainDead, noLastLook}},
	{name: "claim, the runtime's number again", file: "claim", from: host,
		defines: []string{"NEXT_ID=1", "NEXT_TID=12"}, outcomes: []string{"refused", "walked"},
		faults: []fault{plainDead, tidFirst}},
	{name: "claim, another system thread", file: "claim", from: host,
		defines: []string{"NEXT_ID=1", "NEXT_TID=12", "MOVES=1"}, outcomes: []string{"refused", "walked"},
		faults: []fault{
			{"the walk is not waited for", "threads.c",
				[][2]string{{"\twait_for_sampler(thread_id);\n\tsw_thread_unbind(t);\n\tuint64_t",
					"\tsw_thread_unbind(t);\n\tuint64_t"}}, "another thread is stopped"},
			{"the old number stays meanwhile", "threads.c",
				[][2]string{{"\t__atomic_store_n(&t->tid, 0, __ATOMIC_SEQ_CST);\n\twait", "\twait"}},
				"another thread is stopped"},
		}},
	{name: "window", file: "claim", from: host, defines: []string{"NEXT_ID=2", "NEXT_TID=12", "WINDOW=1"},
		outcomes: []string{"refused", "walked"},
		faults: []fault{
			{"the end of a thread does not wait for a window", "threads.c",
				[][2]string{{"\twhile (__atomic_load_n(&window_open, __ATOMIC_SEQ_CST))\n\t\tsw_sleep_us(100);\n", ""}}, gone},
		}},
	{name: "claim, the table is copied", file: "claim", from: host,
		defines:  []string{"NEXT_ID=2", "NEXT_TID=12", "COPY=1"},
		outcomes: []string{"one", "three", "two"}, races: []string{"claim atomic - sw_threads_copy plain"},
		faults: []fault{
			{"a thread is listed relaxed", "threads.c",
				weaken("__atomic_store_n(&t->tid, tid, __ATOMIC_RELEASE)", "__ATOMIC_RELEASE"), "race"},
			{"the list is read relaxed", "threads.c",
				weaken("tid, __ATOMIC_ACQUIRE) == 0)", "__ATOMIC_ACQUIRE"), "race"},
			{"used is raised by a store", "threads.c", [][2]string{{"while (n < i + 1 && !__atomic_compare_exchange_n(&used, &n, i + 1, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))\n\t\t\t;", "if (n < i + 1)\n\t\t\t__atomic_store_n(&used, i + 1, __ATOMIC_RELEASE);"}}, "not listed"},
		}},
	{name: "ids, the system's number again", file: "owners", from: client,
		defines: []string{"NEXT=11", "OTHER=0"}, outcomes: []string{"new", "none", "old"},
		faults: []fault{
			{"the end of a thread clears its number's id", "ids.c",
				[][2]string{{"__atomic_compare_exchange_n(&ids[i].id, &id, FREE, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED)", "__atomic_store_n(&ids[i].id, id * FREE, __ATOMIC_RELAXED)"}}, "is lost"},
		}},
	{name: "ids, the same entry", file: "owners", from: client, defines: []string{"NEXT=13", "OTHER=0"},
		outcomes: []string{"new", "none"},
		faults: []fault{
			{"the id is there before the number (the old source)", "ids.c",
				[][2]string{{"&id, WRITING, 0, __ATOMIC_ACQ_REL",
					"&id, thread, 0, __ATOMIC_ACQ_REL"}}, anotherID},
			{"the number is not read again", "ids.c",
				[][2]string{{"if (__atomic_load_n(&ids[at].os, __ATOMIC_RELAXED) == os_thread) ",
					""}}, anotherID},
			{"the id is published relaxed", "ids.c",
				weaken("__atomic_store_n(&ids[at].id, thread, __ATOMIC_RELEASE)",
					"__ATOMIC_RELEASE"), anotherID},
			{"the number is published relaxed", "ids.c",
				weaken("__atomic_store_n(&ids[at].os, os_thread, __ATOMIC_RELEASE)",
					"__ATOMIC_RELEASE"), anotherID},
			{"the number is read relaxed", "ids.c",
				weaken("if (__atomic_load_n(&ids[at].os, __ATOMIC_ACQUIRE) != os_thread)",
					"__ATOMIC_ACQUIRE"), anotherID},
		}},
	{name: "ids, two threads for one entry", file: "owners", from: client,
		defines: []string{"NEXT=13", "OTHER=15"}, outcomes: []string{"new", "none"},
		faults: []fault{
			{"an id is taken by a store", "ids.c",
				[][2]string{{"!__atomic_compare_exchange_n(&ids[at].id, &id, WRITING, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)", "(__atomic_store_n(&ids[at].id, WRITING, __ATOMIC_RELEASE), 0)"}}, "is lost"},
		}},
	{name: "capture, one slot for two threads", file: "capture", from: host, defines: []string{"LATE=0"},
		limit: 100_000, outcomes: []string{"both", "first", "none", "second"},
		faults: []fault{
			{"serial and state are two words (the old source)", "capture_linux.c",
				[][2]string{{"if (change(s, serial, SW_ASKED, SW_CAPTURING)) {",
					"if (__atomic_load_n(&s->word, __ATOMIC_ACQUIRE) >> STATES == serial && change(s, __atomic_load_n(&s->word, __ATOMIC_ACQUIRE) >> STATES, SW_ASKED, SW_CAPTURING)) {"}}, another},
			{"a copy under way is not waited out", "capture_linux.c",
				[][2]string{{"state_of(__atomic_load_n(&s->word, __ATOMIC_ACQUIRE)) == SW_CAPTURING || still_silent(tid)", "still_silent(tid)"}}, another},
			{"a wait goes on after its time", "capture_linux.c",
				[][2]string{{" && errno == ETIMEDOUT))", " && errno == EAGAIN))"}}, "after its time"},
			{"a request is published after its signal", "capture_linux.c", [][2]string{
				{"\t__atomic_store_n(&s->word, word(serial, SW_ASKED), __ATOMIC_RELEASE);\n\tif (send(tid, (uint32_t)slot, serial) != 0) {", "\tlong no = send(tid, (uint32_t)slot, serial);\n\t__atomic_store_n(&s->word, word(serial, SW_ASKED), __ATOMIC_RELEASE);\n\tif (no) {"}}, "before its request"},
			{"the copy is published relaxed", "capture_linux.c",
				weaken("__atomic_store_n(&s->word, word(serial, SW_CAPTURED), __ATOMIC_RELEASE)",
					"__ATOMIC_RELEASE"), "race"},
			{"a copy under way is dropped", "capture_linux.c",
				[][2]string{{"SW_IDLE) ? SW_ASKED : state_of(__atomic_load_n(&s->word, __ATOMIC_ACQUIRE));",
					"SW_IDLE), SW_ASKED;"}}, "is dropped"},
			{"the question is not taken back", "capture_linux.c",
				[][2]string{{"return change(s, asked >> STATES, SW_ASKED, SW_IDLE) ? SW_ASKED : ",
					"return state_of(asked) == SW_ASKED ? SW_ASKED : "}}, "is dropped"},
		}},
	{name: "capture, late copies", file: "capture", from: host, defines: []string{"LATE=1"},
		outcomes: []string{"both", "first", "none", "second"},
		faults: []fault{
			{"a thread that blocks the signal is late", "capture_linux.c",
				[][2]string{{"& bit ? BLOCKED : DUE", "& bit ? DUE : DUE"}}, another},
		}},
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
				weaken("__atomic_fetch_sub(&inside, 1, __ATOMIC_RELEASE)", "__ATOMIC_RELEASE"), "race"},
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
				[][2]string{{"\tif (h && !h->left && now() - h->heartbeat < h->stale)\n\t\treturn 0;", "\tif (0)\n\t\treturn 0;"}}, ""},
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
	{name: "events for the sampler", file: "news", from: host, defines: []string{"EACH=1"},
		outcomes: []string{"all read"},
		faults: []fault{
			{"turn is published relaxed", "events.c",
				weaken("turn, lap + 1, __ATOMIC_RELEASE)", "__ATOMIC_RELEASE"), "race"},
			{"head is taken by a store", "events.c",
				[][2]string{{"__atomic_compare_exchange_n(&head, &at, at + 1, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)", "(__atomic_store_n(&head, at + 1, __ATOMIC_RELEASE), 1)"}}, "lost"},
		}},
	{name: "events for the sampler, a full ring", file: "news", from: host, defines: []string{"EACH=2"},
		outcomes: []string{"all read", "some dropped"},
		faults: []fault{
			{"a full ring is not counted", "events.c",
				[][2]string{{"\t\t\t__atomic_add_fetch(&lost, 1, __ATOMIC_RELAXED);\n", ""}}, "lost"},
			{"a cell is given back relaxed", "events.c",
				weaken("turn, lap + 2, __ATOMIC_RELEASE)", "__ATOMIC_RELEASE"), "race"},
			{"lost is read and cleared in two steps", "events.c",
				[][2]string{{"__atomic_exchange_n(&lost, 0, __ATOMIC_RELAXED)",
					"__atomic_load_n(&lost, __ATOMIC_RELAXED);\n\t__atomic_store_n(&lost, 0, __ATOMIC_RELAXED)"}}, "lost"},
		}},
	{name: "events for the sampler, a module is unloaded", file: "news", from: host,
		defines: []string{"EACH=1", "UNLOAD=1"}, outcomes: []string{"all read"},
		faults: []fault{
			{"resolving is set with release", "events.c",
				[][2]string{{"&resolving, 1, __ATOMIC_SEQ_CST", "&resolving, 1, __ATOMIC_RELEASE"}},
				"are named"},
			{"an unload is an event of the ring (the old source)", "events.c",
				[][2]string{{"\t__atomic_store_n(&unloading, 1, __ATOMIC_SEQ_CST);\n", "\tsw_event_push(SW_EVENT_MODULE_UNLOAD, 0);\n"}}, "are named"},
		}},
	{name: "watchdog", file: "watch", from: host, defines: []string{"CLR=0", "SAME=0"},
		outcomes: []string{"", "first let go", "second let go"},
		faults: []fault{
			{"the thread runs on before the word is taken", "watchdog_windows.c",
				[][2]string{{"\t\tif (!__atomic_compare_exchange_n(&state, &now, TAKEN",
					"\t\tlet_run(thread);\n\t\tif (!__atomic_compare_exchange_n(&state, &now, TAKEN"},
					{"\t\tlet_run(thread);\n\t\t__atomic_store_n", "\t\t__atomic_store_n"}}, "resumed twice"},
			{"the word is taken by a store", "watchdog_windows.c",
				[][2]string{{"!__atomic_compare_exchange_n(&state, &now, TAKEN, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)", "(__atomic_store_n(&state, TAKEN, __ATOMIC_SEQ_CST), 0)"}}, ""},
			{"the sampler takes the word back by a store", "watchdog_windows.c",
				[][2]string{{"!asked || __atomic_compare_exchange_n(&state, &own, IDLE, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)", "!asked || (__atomic_exchange_n(&state, IDLE, __ATOMIC_SEQ_CST), own)"}}, "resumed twice"},
			{"questions have no number", "watchdog_windows.c",
				[][2]string{{"__atomic_store_n(&state, ++questions,", "__atomic_store_n(&state, questions,"}},
				"resumed twice"},
			{"the question is asked before the thread is named", "watchdog_windows.c", [][2]string{
				{"\t__atomic_store_n(&asked, t ? (HANDLE)(uintptr_t)t->handle : NULL, __ATOMIC_RELAXED);\n\tif (asked)\n\t\t__atomic_store_n(&state, ++questions, __ATOMIC_SEQ_CST);\n",
					"\t__atomic_store_n(&state, ++questions, __ATOMIC_SEQ_CST);\n\t__atomic_store_n(&asked, t ? (HANDLE)(uintptr_t)t->handle : NULL, __ATOMIC_RELAXED);\n"}}, "resumed twice"},
			{"a thread that ran on stays known", "watchdog_windows.c",
				[][2]string{{"\tint was = let_go;\n\tlet_go = 0;\n", "\tint was = let_go;\n"}},
				"which thread ran on"},
		}},
	{name: "watchdog, the CLR holds the threads too", file: "watch", from: host,
		defines: []string{"CLR=1", "SAME=0"}, outcomes: []string{"", "first let go", "second let go"},
		faults: []fault{
			{"the CLR's suspension stays", "watchdog_windows.c",
				[][2]string{{"before > 1);", "before > 2);"}}, "stays held"},
		}},
	{name: "watchdog, one thread twice", file: "watch", from: host, defines: []string{"CLR=0", "SAME=1"},
		outcomes: []string{"", "first let go", "second let go"},
		faults: []fault{
			{"the watchdog answers before it resumes", "watchdog_windows.c",
				[][2]string{{"\t\tlet_run(thread);\n\t\t__atomic_store_n(&state, RESUMED, __ATOMIC_SEQ_CST);\n", "\t\t__atomic_store_n(&state, RESUMED, __ATOMIC_SEQ_CST);\n\t\tlet_run(thread);\n"}}, "should run"},
		}},
	{name: "an example's sampler, a thread that ends", file: "vendor", from: "capi/examples",
		outcomes: []string{"", "sampled"},
		faults: []fault{
			{"the handle is read again (the old source)", "own_protocol_windows.c", [][2]string{
				{"SuspendThread(thread)", "SuspendThread(t->handle)"},
				{"ResumeThread(thread)", "ResumeThread(t->handle)"}}, "stays suspended"},
			{"the callback does not wait", "own_protocol_windows.c",
				[][2]string{{"while (claimed == id)", "while (0)"}}, "closed handle"},
			{"the handle is cleared after the wait", "own_protocol_windows.c", [][2]string{
				{"atomic_exchange(&t->handle, (HANDLE)0)", "t->handle"},
				{"\t\t\tt->id = 0;", "\t\t\tatomic_store(&t->handle, (HANDLE)0);\n\t\t\tt->id = 0;"}}, "closed handle"},
			{"the ID is not compared again", "own_protocol_windows.c",
				[][2]string{{" && t->id == claimed;", ";"}}, "another thread"},
		}},
	{name: "copies, a slot each", file: "copies", from: library, defines: []string{"PLACES=2"},
		outcomes: []string{"both"},
		faults: []fault{
			{"a copy is there before its stack", "copies_amd64.c",
				[][2]string{{"\tfill(c);\n\t__atomic_store_n(&c->state, WHOLE, __ATOMIC_RELEASE);\n",
					"\t__atomic_store_n(&c->state, WHOLE, __ATOMIC_RELEASE);\n\tfill(c);\n"}}, "not whole"},
		}},
	{name: "copies, one slot", file: "copies", from: library, defines: []string{"PLACES=1"},
		outcomes: []string{"both", "one dropped"},
		faults: []fault{
			{"a slot is taken by a store", "copies_amd64.c",
				[][2]string{{"__atomic_compare_exchange_n(&c->state, &none, FILLING, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)", "(none = __atomic_load_n(&c->state, __ATOMIC_ACQUIRE), __atomic_store_n(&c->state, FILLING, __ATOMIC_RELEASE), none == FREE)"}}, ""},
			{"the state is read relaxed", "copies_amd64.c",
				weaken("__atomic_load_n(&copies[i].state, __ATOMIC_ACQUIRE)", "__ATOMIC_ACQUIRE"), "race"},
			{"a slot is given back relaxed", "copies_amd64.c",
				weaken("__atomic_store_n(&c->state, FREE, __ATOMIC_RELEASE)", "__ATOMIC_RELEASE"), "race"},
			{"a copy without room is not counted", "copies_amd64.c",
				[][2]string{{"\t__atomic_add_fetch(&dropped, 1, __ATOMIC_RELAXED);\n", ""}}, "without room"},
		}},
	{name: "a vendor's sampler, it is closed", file: "client", from: library, defines: []string{"OPENS=0"},
		outcomes: []string{"", "round", "roundround"},
		faults: []fault{
			{"a close meanwhile is not seen", "sampler_amd64.c",
				[][2]string{{"\tif (sw_sampler_is_open())\n\t\treturn SEEDWALK_OK;\n\t__atomic_store_n(&inside, 0, __ATOMIC_SEQ_CST); /* closed meanwhile */\n\treturn SEEDWALK_NOT_OPEN;\n", "\treturn SEEDWALK_OK;\n"}}, "is closed"},
			{"the state is read with acquire (the old source)", "sampler_amd64.c",
				[][2]string{{"__atomic_load_n(&state, __ATOMIC_SEQ_CST)",
					"__atomic_load_n(&state, __ATOMIC_ACQUIRE)"}}, "is closed"},
			{"a round is not waited for", "sampler_amd64.c",
				[][2]string{{"ms < LONGEST_ROUND_MS && __atomic_load_n(&inside",
					"0 && __atomic_load_n(&inside"}}, "is closed"},
			{"a round is stopped after the wait", "sampler_amd64.c", [][2]string{
				{"\tsw_stop(); /* a running round ends after the current thread */\n", ""},
				{"ms++)\n\t\tsw_sleep_us(1000);\n",
					"ms++)\n\t\tsw_sleep_us(1000);\n\tsw_stop();\n"}}, "not stopped"},
			{"the next stack is taken outside", "sampler_amd64.c", [][2]string{
				{"\tif (next_stack < sw_stack_count)\n", "\t__atomic_store_n(&inside, 0, __ATOMIC_SEQ_CST);\n\tif (next_stack < sw_stack_count)\n"},
				{"next_stack++];\n\t__atomic_store_n(&inside, 0, __ATOMIC_SEQ_CST);\n", "next_stack++];\n"}}, "race"},
			{"state is closed with release", "sampler_amd64.c",
				[][2]string{{"&state, &open, ENDED, 0, __ATOMIC_SEQ_CST",
					"&state, &open, ENDED, 0, __ATOMIC_RELEASE"}}, ""},
			{"no stack is passed on", "sampler_amd64.c",
				[][2]string{{"\t\tq->on_stack(q->client, &sw_stacks[i]);\n", "\t\t;\n"}},
				"on_stack does not"},
		}},
	{name: "a vendor's sampler, it is opened", file: "client", from: library, defines: []string{"OPENS=1"},
		outcomes: []string{"", "round"},
		faults: []fault{
			{"Go counts as started before it is", "sampler_amd64.c",
				[][2]string{{"\tswgoSamplerBegin();\n\t__atomic_store_n(&begun, 1, __ATOMIC_SEQ_CST);\n",
					"\t__atomic_store_n(&begun, 1, __ATOMIC_SEQ_CST);\n\tswgoSamplerBegin();\n"}}, "before Go has started"},
			{"the opener is stored late", "sampler_amd64.c",
				[][2]string{{"\topener = sw_thread_self();\n\terr = start(&o);\n\t__atomic_store_n(&state, err ? CLOSED : OPEN, __ATOMIC_SEQ_CST);\n", "\terr = start(&o);\n\t__atomic_store_n(&state, err ? CLOSED : OPEN, __ATOMIC_SEQ_CST);\n\topener = sw_thread_self();\n"}}, "race"},
		}},
	{name: "a vendor's callbacks", file: "check", from: library, outcomes: []string{"all", "too early"},
		faults: []fault{
			{"one look is enough", "check_amd64.c",
				[][2]string{{"\t\twhat &= missing(all);\n", "\t\twhat |= missing(all);\n"}}, "in progress"},
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
				weaken("SW_READ_ASKED + SW_READ_DONE, __ATOMIC_RELEASE)", "__ATOMIC_RELEASE"), "race"},
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
				[][2]string{{"int own = low && from >= low", "int own = low && from >= s->low"}}, "race"},
		}},
	{name: "bounds of a stack, on the alternate one", file: "bounds", defines: []string{"ALT=1"},
		outcomes: []string{"checked", "without a check"},
		faults: []fault{
			{"a main thread has a fiber's bounds (the old source)", "FIBER=1", nil, beyond},
			{"the tool stores the end late", "LATE=1", nil, beyond},
			{"the start is read relaxed", "handler.c",
				weaken("__atomic_load_n(&s->low, __ATOMIC_ACQUIRE)", "__ATOMIC_ACQUIRE"), beyond},
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
				weaken("__atomic_store_n(&s->answered, ask, __ATOMIC_RELEASE)", "__ATOMIC_RELEASE"), "race"},
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
				weaken("__atomic_store_n(&o->since, time, __ATOMIC_RELEASE)", "__ATOMIC_RELEASE"), torn},
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
			{"commit relaxed", "handler.c", weaken(releaseCommit, "__ATOMIC_RELEASE"), "race"},
			{"claim told relaxed", "local.h",
				weaken("__atomic_store_n(&r->claim, head | 2, __ATOMIC_RELEASE)", "__ATOMIC_RELEASE"),
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
			{"an event is committed relaxed", "copy.c", weaken(releaseCommit, "__ATOMIC_RELEASE"), "race"},
			{"an event is committed before its flags", "copy.c",
				[][2]string{{"\tr->flags = (uint16_t)flags;\n",
					"\t__atomic_store_n(&r->commit, at | 1, __ATOMIC_RELEASE);\n\tr->flags = (uint16_t)flags;\n"}},
				"race"},
		}},
	{name: "ring, full", file: "ring", defines: []string{"FREE=SIZE"},
		outcomes: []string{"1 read, 1 dropped", "2 read, 0 dropped"},
		faults: []fault{
			{"a dropped sample is not counted", "handler.c",
				[][2]string{{"\t\t__atomic_fetch_add(&h->dropped, 1, __ATOMIC_RELAXED);\n", ""}}, "lost"},
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
				weaken("__atomic_load_n(&r->table, __ATOMIC_ACQUIRE)", "__ATOMIC_ACQUIRE"), "race"},
		}},
	{name: "dropped events of one type", file: "types", defines: []string{"SAME=1"},
		outcomes: []string{"named", "named named"},
		faults: []fault{
			{"size is written relaxed", "dropped.c",
				weaken("__atomic_store_n(&t->size, n + 1, __ATOMIC_RELEASE)", "__ATOMIC_RELEASE"), "race"},
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

func slug(s string) string { return strings.ReplaceAll(strings.ReplaceAll(s, ",", ""), " ", "-") }

// Every world is explored whole, finds nothing in the product's C, and finds each fault.
func TestWorlds(t *testing.T) {
	for _, w := range worlds {
		if w.long && !*long {
			continue
		}
		t.Run(slug(w.name), func(t *testing.T) {
			check(t, w)
			for _, f := range w.faults {
				t.Run(slug(f.name), func(t *testing.T) { find(t, w, f) })
			}
		})
	}
}

// check explores a world of the product as it is.
func check(t *testing.T, w world) {
	r := explore(t, w, "weak", fault{})
	t.Log(r)
	if r.Failures > 0 {
		t.Fatalf("%s\n%s", r.Why, strings.Join(r.Trace, "\n"))
	}
	if (!r.Whole && !w.long) || !slices.Equal(r.Outcomes, w.outcomes) {
		t.Errorf("whole %v, outcomes %q, want %q", r.Whole, r.Outcomes, w.outcomes)
	}
	expect.Slices(t, r.Races, w.races, "data races")
}

// The probe for ARM64 has other system calls, registers, and frames of signals.
func TestWorldsARM64(t *testing.T) {
	if !*long {
		t.Skip("SKIPPED-CHECK: the probe for ARM64 is explored with -explore only (make explore)")
	}
	for _, w := range worlds {
		if w.from == "" && !w.long {
			w.arm64 = true
			t.Run(slug(w.name), func(t *testing.T) { check(t, w) })
		}
	}
}

// find puts a fault into the product and explores: the world must find it.
func find(t *testing.T, w world, f fault) {
	exe := compile(t, w, f)
	for _, mode := range []string{"strong", "weak"} {
		r := run(t, w, mode, exe)
		if f.finds == "race" && !slices.Equal(r.Races, w.races) {
			t.Logf("%s: %d races: %s", mode, len(r.Races), r.Races[0])
			return
		}
		if r.Failures > 0 {
			t.Logf("%s: %d of %d executions, %.2f s: %s", mode, r.Failures,
				r.Executions, r.Time.Seconds(), r.Why)
			expect.Contains(t, r.Why, f.finds)
			return
		}
	}
	t.Errorf("the world does not find it: %v", f.edits)
}
