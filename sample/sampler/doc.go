// Package sampler is shared by all engines: it walks copied stacks, holds them until the runtime's tables are
// verified, counts them, and sends them. It also has the configuration of a recording.
//
// Sources: the packages stack/walk, sample/target and report/wire.
//
// Glossary. A sample is *held* while a later walk may give a better stack.
//
// Strategy. An engine embeds Base, sets the functions that read mappings and the rest of truncated stacks,
// and sends samples through it. The number and size of held samples are bounded.
//
// Known gaps: samples beyond these bounds are walked at once, as far as possible.
package sampler
