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
// The JSON, its version and what its fields mean stand in docs/json.md.
//
// # Known gaps
//
// Source files and lines stand in pprof and JSON only. The page needs a browser with ES2020 and canvas.
// Flamegraph.pl colours classes by suffixes of names, which WriteFolded does not
// write, because names would then differ from those of the other formats.
package export
