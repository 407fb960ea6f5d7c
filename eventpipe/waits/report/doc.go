// Package report writes an analysis of package waits: text for terminals, a page, JSON, CSV,
// pprof, and folded stacks.
//
// Sources: google/pprof proto/profile.proto; the collapsed form of
// brendangregg/FlameGraph; RFC 4180 for CSV.
//
// Glossary: that of package waits. A wait is *idle* if a thread of the pool waits for work.
//
// Strategy. All writers read the same finished Analysis and never change it. Each
// output but CSV has the reasons why it is partial. CSV has the number of lost events. Idle waits
// of the thread pool and waits of starting threads are marked in JSON, CSV, and pprof,
// and omitted in text and page.
//
// Known gaps: no source lines.
//
// # JSON
//
// One object. Times are integers in nanoseconds; start_ns counts from the
// session's start. Addresses and locks are strings in hexadecimal.
//
//	format        "seedwalk-waits"; version 1
//	process       {pid, command_line, runtime, pointer_size}
//	start         RFC 3339, omitted if unknown; duration_ns
//	events        {read, lost}
//	unseen        which kinds of waits the trace cannot show, omitted if it can show all
//	partial       [string], why the result is incomplete; omitted if it is complete
//	total         {waits, ns}: top-level waits, lower bounds among them
//	unreliable, unmatched_stops, unlisted: integers
//	waits         [{kind: lock|wait|monitor-wait; event: Contention|WaitHandleWait;
//	              state: complete|begun-before|still-open|unreliable; reliable: bool;
//	              thread; process where the trace has several; thread_name; start_ns, stop_ns,
//	              duration_ns (exact if reliable); depth: 0 = top-level; idle: the pool's own;
//	              lock, object, owner;
//	              owner_chain: [{thread, kind, stack}]; circle: the owners wait for each other;
//	              reported_ns; differs; blocked; native: [name], frames above the stack found from
//	              outside; stack: [name], leaf first, native ones between them too where found}]
//	sites         [{kind, count, ns, max_ns, lower_bounds, unreliable, idle, native, frames: [{name, module, address, managed}]}]
//	threads       [{id, name, count, ns, max_ns}]
package report
