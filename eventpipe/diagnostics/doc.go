// Package diagnostics talks to the diagnostics server inside a .NET process:
// what process it is, start and stop of EventPipe sessions, resume of a process
// that waits at its start, loading of a profiler.
//
// Sources: dotnet/diagnostics documentation/design-docs/ipc-protocol.md;
// dotnet/runtime src/native/eventpipe/ds-protocol.c, ds-eventpipe-protocol.c,
// ds-profiler-protocol.c, ds-ipc-pal-socket.c, releases 9.0 and 10.0.
//
// Glossary. A command is one message with a set, an id and a payload, and takes
// a connection of its own. A port is where runtimes and tools meet: the default
// one is a socket (a named pipe on Windows) that the runtime listens at; at a
// reverse port the tool listens, the runtime connects and advertises itself,
// once for every command.
//
// Strategy. The newest form of a command is tried first and the next older one
// when the runtime says that it does not know it. A session's bytes come on the
// connection that started it; it is stopped on another, while the first is still
// read: a runtime that cannot write does not stop. The only serialization format
// ever asked for is 1 (.nettrace version 4): any other kills a .NET 9 process.
// Sockets of processes that died stay in the file system: the process's start
// time, which stands in the name, is compared before connecting.
//
// Known gaps. On Windows there is no reverse port; a process is launched there
// with its default port suspended, and its children must not be .NET processes.
// Dumps and other commands of the server are not spoken.
package diagnostics
