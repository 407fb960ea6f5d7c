// Package engine is the helper process of the client library: the program `seedwalk engine`, which
// the library starts beside a program to sample it.
//
// Sources: unix(7) for descriptors in messages; capi/client/src for the other end; report/wire for
// what is sent.
//
// Glossary. The *client* is the library in the program. It contains the probe. The helper's *socket*, its
// descriptor 3, is connected to the client.
//
// Strategy. The client sends the probe's file, and gets the stream of samples. Sampling ends when the client
// shuts down its sending side, or when the program ends. A helper that cannot sample sends a note and the
// farewell "refused". The helper does not trust the content of the file, and restricts itself to the system
// calls that it needs (the sandbox).
//
// Known gaps: Linux only.
package engine

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seedwalk/seedwalk/process/live"
	"github.com/seedwalk/seedwalk/report/wire"
	"github.com/seedwalk/seedwalk/sample/outside"
	"github.com/seedwalk/seedwalk/sample/probe"
	"github.com/seedwalk/seedwalk/sample/sampler"
	"github.com/seedwalk/seedwalk/sample/target"
)

const (
	socket     = 3
	greetLimit = 5 * time.Second
	maxRate    = 1000000
	memory     = 1 << 30 // soft limit of Go's memory, bytes
	// Refused is the farewell of a helper that cannot sample. The client's C knows it.
	Refused = "refused"
)

// Run runs the command. It returns the exit code: 0, 1 if it could not sample, 2 for wrong usage.
func Run(args []string) int {
	f := flag.NewFlagSet("engine", flag.ContinueOnError)
	f.Usage = func() {}
	pid, rate := f.Int("pid", 0, ""), f.Int("millihertz", 0, "")
	cfg := sampler.Config{Client: true}
	code := f.Uint64("code", 0, "")
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
	cfg.Probe = fileAt(*pid, *code)
	debug.SetMemoryLimit(memory)
	c, err := client()
	if err != nil {
		fmt.Fprintln(os.Stderr, "seedwalk engine:", err)
		return 2
	}
	defer c.Close()
	if err := serve(c, *pid, cfg); err != nil {
		w := wire.NewWriter(nil)
		w.Note(err.Error())
		w.Bye(Refused)
		c.Write(w.Bytes())
		return 1
	}
	return 0
}

// fileAt returns the file that a process has mapped at an address, or "".
func fileAt(pid int, addr uint64) string {
	maps, _ := live.Maps(pid)
	for i := range maps {
		if m := &maps[i]; m.Start <= addr && addr < m.End {
			return strings.TrimSuffix(m.Path, " (deleted)")
		}
	}
	return ""
}

// client returns the connection to the client: descriptor 3.
func client() (*net.UnixConn, error) {
	f := os.NewFile(socket, "client")
	defer f.Close()
	c, err := net.FileConn(f)
	if err != nil {
		return nil, fmt.Errorf("descriptor %d is no socket; only a client library can start this command", socket)
	}
	u, ok := c.(*net.UnixConn)
	if !ok {
		c.Close()
		return nil, fmt.Errorf("descriptor %d is no unix socket", socket)
	}
	return u, nil
}

// serve samples the process until the process ends, or the client shuts down its sending side.
func serve(c *net.UnixConn, pid int, cfg sampler.Config) error {
	fd, err := greeting(c)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if why := target.Refuses(pid); why != "" {
		return errors.New(why)
	}
	here, there := net.Pipe()
	e, err := outside.New(pid, fd, cfg, there)
	if err != nil {
		return err
	}
	sandbox(pid, cfg.Raw != "") // if the kernel has no such filters, the helper works without it
	passed := make(chan error, 1)
	go func() {
		passed <- newNamer(pid).pass(here, c)
		here.Close() // the client is gone: so the engine's writes fail
	}()
	go func() {
		io.Copy(io.Discard, c) // the client sends nothing more: its end is all there is to read
		e.Stop()
	}()
	e.Run()
	there.Close()
	<-passed
	return nil
}

// greeting receives the probe's file.
func greeting(c *net.UnixConn) (fd int, err error) {
	c.SetReadDeadline(time.Now().Add(greetLimit))
	defer c.SetReadDeadline(time.Time{})
	b, control := make([]byte, 8), make([]byte, unix.CmsgSpace(4))
	n, oob, _, _, err := c.ReadMsgUnix(b, control)
	if err != nil {
		return -1, fmt.Errorf("the client sent nothing: %w", err)
	}
	if fd, err = probe.Greeted(b[:n], control[:oob]); err == nil && fd < 0 {
		err = errors.New("the client sent no file")
	}
	return fd, err
}
