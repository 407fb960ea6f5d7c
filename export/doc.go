// Package export writes recorded profiles: pprof, a flame graph in HTML,
// collapsed stacks, speedscope, JSON, and text for terminals.
package export
