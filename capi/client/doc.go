// Package client is the client library: the sampler's interface of capi/seedwalk.h in plain C, over a
// helper process. The package itself has its tests only; the sources are in src, and build.sh builds them.
//
// Sources: clone(2), unix(7), pidfd_open(2); Microsoft, CreateProcessW, CreatePipe, and
// PROC_THREAD_ATTRIBUTE_HANDLE_LIST; report/wire for the stream; sample/probe/src, which is part of the
// library.
//
// Glossary. The *engine*, or helper, is `seedwalk engine` (cmd/engine).
//
// Strategy. The program gets no thread, no lock, no Go, and no suspension of its runtime. On Linux, the
// helper is not a child process of the program. The decoder of its messages checks every size. If the
// helper ends, hangs, or sends anything else, the library restores the process and the caller gets an
// error. Only the files that are named after a system make system calls.
//
// Known gaps: Linux and Windows x64 only. The library for ARM64 has not been tested on a real machine. The
// library for Windows has been tested in Wine only. There, nothing resumes the thread that fetches stacks
// if the helper is killed while it has suspended that thread.
package client
