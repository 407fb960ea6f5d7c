// Package nettrace reads EventPipe traces (.nettrace), from a file or a live stream, one
// event at a time. Packages eventpipe/waits and report/trace use it. A Reader belongs to
// one goroutine.
//
// Sources: microsoft/perfview src/TraceEvent/EventPipe/NetTraceFormat_v5.md
// (versions 4 and 5), NetTraceFormat.md (version 6), and NetPerfFormat.md (1 to 3); dotnet/runtime
// src/native/eventpipe/ep-block.c, ep-file.c, ep-session.c, release 9.0.
//
// Glossary. A block is a part of the stream with a size: events, metadata, stacks, or a
// sequence point. Metadata describes a kind of event: provider, id, and version. The
// capture thread wrote an event; gaps in its counter, the sequence number, show dropped
// events. At a sequence point, stack ids become invalid, and the stream gives every
// thread's counter. A fault is damage inside a block.
//
// Strategy. The reader holds one block, the stacks since the last sequence point, and the
// metadata; each has a limit. It allocates only for bytes that are present. It leaves a
// damaged block at its first bad event and reads the next block. Damage to the framing
// ends the reading. In both cases, everything before the damage is delivered, and the
// error has the offset. Payloads and stacks are slices of the reader's memory and valid
// until the next call of Next.
//
// Known gaps. Label lists of version 6 are skipped. Field descriptions in metadata are
// ignored: the runtime's own events have none, and package clrevent decodes them by
// provider, id, and version. Version 6 was not tested with a real runtime: .NET 10 writes
// version 4.
package nettrace
