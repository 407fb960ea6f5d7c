// Package client is the client library: the sampler's interface of capi/seedwalk.h in plain C, over a helper
// process. The package itself has its tests only; the sources are in src, and build.sh builds them.
//
// Sources: clone(2), unix(7), pidfd_open(2); report/wire for the stream; sample/probe/src, which is part of
// the library.
//
// Glossary. The *engine*, or helper, is `seedwalk engine` (cmd/engine).
//
// Strategy. The program gets no thread, no lock, no Go, and no suspension. The helper is not a child process
// of the program. The decoder of its messages checks every size. If the helper ends, hangs, or sends anything
// else, the library restores the signal handlers and the caller gets an error.
//
// Known gaps: Linux only. Only the x86-64 library has been tested on a real runtime.
package client
