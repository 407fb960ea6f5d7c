// Package nettrace reads EventPipe traces (.nettrace), from a file or a live
// stream, one event at a time.
//
// Sources: microsoft/perfview src/TraceEvent/EventPipe/NetTraceFormat_v5.md
// (versions 4 and 5) and NetTraceFormat.md (version 6); dotnet/runtime
// src/native/eventpipe/ep-block.c, ep-file.c, ep-session.c, release 9.0.
//
// Glossary. A block is a sized piece of the stream: events, metadata, stacks, a
// sequence point. Metadata describes a kind of event: provider, id, version. The
// capture thread is the one that wrote an event; its counter, the sequence
// number, shows what was dropped. A sequence point is where stack ids end and
// where every thread's counter is stated. A fault is damage inside a block.
//
// Strategy. One block is held at a time, with the stacks since the last sequence
// point and the metadata; each has a limit. Sizes are believed only as far as
// bytes follow. A block that is damaged is left at its first bad event and the
// next is read; damage to the framing ends the reading. Either way all that was
// read before is delivered, of a block that is cut too, and the error names the
// offset. Payloads and stacks are slices of the reader's memory: they are valid
// until the next call of Next.
//
// Known gaps. Versions 1 to 3 ("netperf") are refused. Label lists of version 6
// are skipped. Fields that metadata describes are not kept: the runtime's own
// events have none, and package waits decodes those by provider, id and version.
// No file of version 6 from a real runtime was at hand: .NET 10 writes version 4.
package nettrace
