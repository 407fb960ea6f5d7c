//go:build linux || (windows && amd64)

// Package engine is the helper process of the client library: the program `seedwalk engine`, which
// the library starts beside a program to sample it.
//
// Sources: unix(7) for descriptors in messages; Microsoft, CreatePipe and handle inheritance;
// capi/client/src for the other end; report/wire for what is sent.
//
// Glossary. The *client* is the library in the program. It contains the probe. On Linux the helper's
// *socket*, its descriptor 3, is connected to the client. On Windows, its standard input and output
// are pipes to the client, and it inherits the handle of the probe's *section*.
//
// Strategy. The client shares the probe's file, and gets the stream of samples. Sampling ends when the
// client closes its sending side, or when the program ends. A helper that cannot sample sends a note and the
// farewell "refused". The helper does not trust the content of the file. On Linux the helper restricts itself
// to the system calls that it needs (the sandbox).
//
// Known gaps: Linux and Windows x64 only. There is no sandbox on Windows. The Windows part has been tested in
// Wine only.
package engine

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime/debug"

	"github.com/seedwalk/seedwalk/report/wire"
	"github.com/seedwalk/seedwalk/sample/sampler"
)

const (
	maxRate     = 1000000
	onlyClients = "only a client library can start this command"
	memory      = 1 << 30 // soft limit of Go's memory, bytes
	// Refused is the farewell of a helper that cannot sample. The client's C knows it.
	Refused = "refused"
)

// Run runs the command. It returns the exit code: 0, 1 if it could not sample, 2 for wrong usage.
func Run(args []string) int {
	f := flag.NewFlagSet("engine", flag.ContinueOnError)
	f.Usage = func() {}
	pid, rate := f.Int("pid", 0, ""), f.Int("millihertz", 0, "")
	cfg := sampler.Config{Client: true}
	given := f.Uint64(givenFlag, 0, "")
	f.BoolVar(&cfg.NoCPU, "no-cpu", false, "")
	f.BoolVar(&cfg.NoWall, "no-wall", false, "")
	f.StringVar(&cfg.Raw, "raw", "", "")
	if err := f.Parse(args); err != nil || f.NArg() > 0 || *pid <= 0 || *rate <= 0 || *rate > maxRate {
		if errors.Is(err, flag.ErrHelp) {
			fmt.Print(Help)
			return 0
		}
		fmt.Fprint(os.Stderr, "seedwalk engine: for client libraries only, which start it\n", Help)
		return 2
	}
	cfg.RateHz = float64(*rate) / 1000
	debug.SetMemoryLimit(memory)
	c, err := client()
	if err != nil {
		fmt.Fprintln(os.Stderr, "seedwalk engine:", err)
		return 2
	}
	defer c.Close()
	if err := serve(c, *pid, *given, cfg); err != nil {
		w := wire.NewWriter(nil)
		w.Note(err.Error())
		w.Bye(Refused)
		c.Write(w.Bytes())
		return 1
	}
	return 0
}

// engine is a sampler of one process.
type engine interface {
	Run() string
	Stop()
}

// run runs the engine, which writes to q, until the process ends or stop is closed.
func run(e engine, pid int, q *queue, c io.Writer, stop <-chan struct{}) {
	passed := make(chan error, 1)
	go func() {
		passed <- newNamer(pid).pass(q, c)
		q.Close() // the client is gone: this makes the engine's writes fail
	}()
	go func() {
		<-stop
		e.Stop()
	}()
	e.Run()
	q.Close()
	<-passed
}

// endOf closes the channel at the end of what the client sends.
func endOf(c io.Reader) <-chan struct{} {
	ended := make(chan struct{})
	go func() {
		io.Copy(io.Discard, c) // the client sends nothing: Copy returns when it closes
		close(ended)
	}()
	return ended
}
