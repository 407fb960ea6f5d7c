// Package diagnostics talks to the diagnostics server inside a .NET process: it gets the process's
// description, starts and stops EventPipe sessions, resumes a process that waits at its start, and loads a
// profiler.
//
// Sources: dotnet/diagnostics documentation/design-docs/ipc-protocol.md; dotnet/runtime
// src/native/eventpipe/ds-protocol.c, ds-eventpipe-protocol.c, ds-profiler-protocol.c, ds-ipc-pal-socket.c,
// releases 9.0 and 10.0.
//
// Glossary. A command is one message with a set, an id, and a payload, and has a connection of its own. A
// port connects runtimes and tools: at the default port, a socket (a named pipe on Windows), the runtime
// listens; at a reverse port the tool listens, and the runtime connects and advertises itself, once for every
// command.
//
// Strategy. The newest form of a command is tried first, and the next older one if the runtime reports that
// it does not know it. A session's data come on the connection that started it. The session is stopped on
// another connection while the first is still being read, because a runtime that cannot write does not stop.
// The only serialization format that is requested is 1 (.nettrace version 4): any other crashes a .NET 9
// process. Sockets of dead processes stay in the file system, so the process's start time, which is in the
// name, is compared before connecting.
//
// Known gaps. On Windows there is no reverse port; a process is launched there with its default port
// suspended, and its children must not be .NET processes. Dumps and other commands of the server are not
// supported.
package diagnostics
