// Package startup samples a command from its start, before its runtime loads the probe.
//
// Sources: perf_event_open(2), by the package cpuring.
//
// Glossary. An engine *takes* the samples when it starts.
//
// Strategy. The kernel's rings hold the samples. They are copied every two milliseconds, within a bound, and
// walked once the runtime's tables are known.
//
// Known gaps: Linux with perf events only.
package startup
