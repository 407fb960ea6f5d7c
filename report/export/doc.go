// Package export writes recorded profiles: pprof, a flame graph in HTML, collapsed stacks,
// speedscope, Firefox Profiler, Chrome's trace events, OpenTelemetry, JSON, and text for
// terminals.
//
// Sources: google/pprof proto/profile.proto and its package profile; the
// collapsed form of brendangregg/FlameGraph stackcollapse-*.pl;
// https://www.speedscope.app/file-format-schema.json; firefox-devtools/profiler
// src/types/profile.ts, version 62 of the processed profile format; package otlp and
// OpenTelemetry's semantic conventions for profiles, processes, and threads; ECMA-48 for colors.
//
// Glossary. A frame is a function, or an address in a function. A symbol groups all
// frames with the same name, module, and class. Formats for people show symbols. A gap
// is a place with missing frames. A doubtful frame was found by a guess. The class is
// the kind of code that runs.
//
// Strategy. All writers take the same Profile, check its indices, and never
// change it; the same profile gives the same bytes. A gap is never dropped. An
// incomplete stack without a gap frame gets one at its root, where the walk ended. A
// doubtful frame is a separate symbol. In formats that show only names, it is called
// "NAME [doubtful]". Names come from the recorded process and may contain any byte.
// Control characters and marks of text direction become U+FFFD (in JSON they are
// escaped). The page inserts names into its document as text only.
//
// docs/json.md describes the JSON, its version, and its fields.
//
// # Known gaps
//
// Collapsed stacks, speedscope, Chrome's trace events, and text have no source files and lines. The
// page needs a browser with ES2020 and canvas. Flamegraph.pl colors classes by name suffixes.
// WriteFolded does not write these suffixes, so that names are the same in all formats.
package export
