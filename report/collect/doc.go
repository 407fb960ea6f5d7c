// Package collect turns the messages of recorded processes (package wire) into a profile
// (package export).
//
// Sources: the messages of package wire. The comments in account.go describe the accounting of CPU
// time.
//
// Glossary. A Process holds what one process sent. A moment is the time of one sample. Usage is
// the exact CPU time of a thread. A namer finds the names of native functions.
//
// Strategy. Samples are folded into distinct stacks as they arrive, so that memory grows with
// the number of different stacks. Of each sample only its time and weight are kept, up to a
// bound. Build may be called at any time: it scales the samples of each thread to the thread's
// CPU time and names the frames.
//
// Known gaps: samples beyond two million per process have no time of their own, so that views
// of a part of the recording lack them.
package collect
