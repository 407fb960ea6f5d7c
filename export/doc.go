// Package export writes recorded profiles: pprof, a flame graph in HTML,
// collapsed stacks, speedscope, JSON, and text for terminals.
//
// Sources: google/pprof proto/profile.proto and its package profile; the
// collapsed form of brendangregg/FlameGraph stackcollapse-*.pl;
// https://www.speedscope.app/file-format-schema.json; ECMA-48 for colours.
//
// Glossary. A frame is a function, or an address of one, as the recorder found
// it. A symbol is what frames of one name, module and class have in common; the
// formats for people show symbols. A gap is a place where frames are missing; a
// doubtful frame was found by a guess. The class says whose code runs.
//
// Strategy. All writers take the same Profile, check its indices, and never
// change it; the same profile gives the same bytes. A gap is never dropped: a
// stack that is not complete and has no gap frame of its own gets one at its
// root, since that is where walks break off. A doubtful frame is a symbol of its
// own and named "NAME [doubtful]" where only a name can be written. Names come
// from the recorded process and may hold anything: control characters and marks
// of text direction become U+FFFD (in JSON they are escaped and kept), and the
// page puts names into its document as text only.
//
// # JSON
//
// One object, version 1. Indices count from 0. Addresses are strings, "0x" and
// lower-case hexadecimal digits, because JSON numbers are doubles to many
// readers. Times are integers in nanoseconds.
//
//	format       "seedwalk-profile"
//	version      1
//	command      [string] the recorded command
//	runtime      string, "" if unknown
//	start        RFC 3339 time in UTC; left out if unknown
//	duration_ns  integer
//	rate_hz      number, samples per second and thread; 0 if unknown
//	stats        {samples, complete: integer; gaps: {reason: integer};
//	             suspended: {count, p50_ns, p99_ns, max_ns}; retries, lost: integer;
//	             suspended_parts: [{name; count, p50_ns, p99_ns, max_ns}] and
//	             tries: [{verdict, hresult: string; count}], where threads are suspended one at a time;
//	             notes: [string]; exit_note: string, left out if empty}
//	modules      [{path; build_id: hexadecimal, left out if none; start, end, offset: address}]
//	threads      [{id: kernel thread id; name}]
//	frames       [{name; module: base name, left out if none; module_index: into modules or -1;
//	             addr: left out if unknown; class: managed|native|runtime|stub|gap;
//	             doubtful: left out if false}]
//	stacks       [{thread: index; frames: [index], leaf first; count; wall_ns, cpu_ns;
//	             complete: bool; gap: reason, left out if complete}]
//
// # Known gaps
//
// No source files or lines. The page needs a browser with ES2020 and canvas.
// Flamegraph.pl colours classes by suffixes of names, which WriteFolded does not
// write, because names would then differ from those of the other formats.
package export
