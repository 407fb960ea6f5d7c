// Package session watches the waits of a running process: EventPipe sessions through its diagnostics port,
// from now on or from the process's start.
//
// Sources: those of packages diagnostics and waits; dotnet/runtime src/native/eventpipe/ep-session.c (buffers
// are written every 100 ms).
//
// Strategy. Three sessions. A short one requests only the list of methods, for those compiled before
// the attach; the list is written when the session is stopped. The main one requests only the waits, so
// that they have its buffer to themselves; it ends with a list of methods too. The third reports
// methods as they are loaded, for names while the program runs, and for methods that are gone at the
// end. The runtime (9.0.5, measured) may crash if it lists compiled methods while it unloads some. So
// that list is requested only after a late attach, and at the end if the trace is kept or the third
// session failed. Otherwise only precompiled methods are listed. The rundown provider is never
// requested as a provider: it would list the methods at the start, which no runtime supports.
//
// Glossary. A *rundown* is the list of existing methods that a session writes at its end.
//
// Known gaps. If the process is killed, the list at the end is missing: only the third session has the
// methods compiled since the start.
package session

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/seedwalk/seedwalk/eventpipe/diagnostics"
	"github.com/seedwalk/seedwalk/eventpipe/nettrace/clrevent"
	"github.com/seedwalk/seedwalk/eventpipe/waits"
)

// Keywords of the sessions.
const (
	waitKeywords = clrevent.KeywordContention | clrevent.KeywordWaitHandle
	nameKeywords = clrevent.KeywordLoader | clrevent.KeywordJIT | clrevent.KeywordNGEN
	listKeywords = clrevent.KeywordLoader | clrevent.KeywordJIT | clrevent.KeywordNGEN
	// Only precompiled methods: the runtime sends no event when it loads them.
	precompiledKeywords = clrevent.KeywordLoader | clrevent.KeywordNGEN
)

// Levels: waits for wait handles are reported only at 5. At 5, the JIT's keyword reports unneeded events.
const (
	waitLevel = 5
	nameLevel = 4
)

// patience is how long a stopped session may take to write its list.
const patience = 60 * time.Second

// Options of Run.
type Options struct {
	BufferMB uint32    // of the main session, 0 = 256
	Keep     io.Writer // receives the main session's bytes, if not nil
	AtStart  bool      // the process waits at its start, and is resumed
	Follow   func(*waits.Wait, []waits.Frame)
	Say      func(string)
	Began    func() // called once nothing later will be missed
	// Blocked, if not nil, is called for open waits.
	Blocked Watcher
}

// Watcher reads the stacks of waiting threads.
type Watcher interface {
	Begin(w *waits.Wait, stack []uint64)
	End(w *waits.Wait)
}

// Run records a process's waits in an Analysis until ctx is done or the process ends. The Analysis keeps
// everything recorded before an error.
func Run(ctx context.Context, c *diagnostics.Client, a *waits.Analysis, opt Options) error {
	if opt.Say == nil {
		opt.Say = func(string) {}
	}
	// The trace has the process's number in its own PID namespace.
	defer func() { a.Trace.ProcessID = c.PID }()
	images(a.Names, c.PID)
	if !opt.AtStart {
		if err := list(c, a, listKeywords); err != nil {
			return fmt.Errorf("the list of methods: %w", err)
		}
	}
	names, failed := c.Collect(nameConfig(opt.Keep == nil))
	if failed != nil {
		opt.Say("methods loaded from now on have no names until the end: " + failed.Error())
	}
	main, err := c.Collect(waitConfig(opt.BufferMB, opt.Keep != nil, failed != nil))
	if err != nil {
		if names != nil {
			go names.Stop()
			io.Copy(io.Discard, names)
			names.Close()
		}
		return err
	}
	a.Requested = true
	if opt.Began != nil {
		opt.Began()
	}
	if opt.AtStart {
		if err := c.Resume(); err != nil {
			return err
		}
	}
	return (&run{c: c, a: a, opt: opt, main: main, names: names}).watch(ctx)
}

// waitConfig returns the configuration of the main session. A kept trace has all methods at its end, and the
// queue of the thread pool.
func waitConfig(bufferMB uint32, keep, all bool) diagnostics.Config {
	config := diagnostics.Config{BufferMB: bufferMB, Rundown: precompiledKeywords,
		Providers: []diagnostics.Provider{{Name: clrevent.Runtime, Keywords: waitKeywords, Level: waitLevel}}}
	if keep || all {
		config.Rundown = listKeywords
	}
	if keep {
		config.Providers[0].Keywords |= clrevent.KeywordThreading
		config.Providers = append(config.Providers,
			diagnostics.Provider{Name: clrevent.Framework,
				Keywords: clrevent.KeywordThreadPool, Level: waitLevel})
	}
	return config
}

// nameConfig returns the configuration of the session for methods. pool adds starvations of the thread pool.
func nameConfig(pool bool) diagnostics.Config {
	keywords := uint64(nameKeywords)
	if pool {
		keywords |= clrevent.KeywordThreading
	}
	return diagnostics.Config{BufferMB: 64, NoStacks: true,
		Providers: []diagnostics.Provider{{Name: clrevent.Runtime, Keywords: keywords, Level: nameLevel}}}
}

// list reads the methods that a process has now.
func list(c *diagnostics.Client, a *waits.Analysis, keywords uint64) error {
	s, err := c.Collect(diagnostics.Config{BufferMB: 64, Rundown: keywords, NoStacks: true,
		Providers: []diagnostics.Provider{{Name: clrevent.Runtime, Level: 1}}})
	if err != nil {
		return err
	}
	defer s.Close()
	stopped := make(chan error, 1)
	go func() { stopped <- s.Stop() }()
	late := time.AfterFunc(patience, func() { s.Close() })
	defer late.Stop()
	err = a.ReadNames(s)
	if fail := <-stopped; fail != nil {
		return fail
	}
	return err
}

// run is one watched process.
type run struct {
	c           *diagnostics.Client
	a           *waits.Analysis
	opt         Options
	main, names *diagnostics.Session

	mapped  time.Time // time of the last search for images
	another bool      // there may be new ones
}

// again is the shortest time between two searches for images.
const again = 50 * time.Millisecond

// findImages reads newly mapped images, because they cannot be read after the process's end. w may have
// frames in one.
func (r *run) findImages(w *waits.Wait) {
	if time.Since(r.mapped) < again {
		r.another = true
		return
	}
	unnamed := func(f waits.Frame) bool { return !f.Named }
	if r.another || slices.ContainsFunc(r.a.Frames(w.Stack, w.Start), unnamed) {
		images(r.a.Names, r.c.PID)
	}
	r.mapped, r.another = time.Now(), false
}

func (r *run) watch(ctx context.Context) error {
	follow := newFollower(r.a, r.opt.Follow)
	follow.relist = func() { list(r.c, r.a, precompiledKeywords) }
	threads := newThreadNames(r.c.PID)
	r.a.OnWait = func(w *waits.Wait) {
		r.findImages(w)
		r.a.Names.Label(w.Thread, func() string { return threads.name(w.Thread) })
		if r.opt.Blocked != nil {
			r.opt.Blocked.End(w)
		}
		follow.add(w)
	}
	if b := r.opt.Blocked; b != nil {
		r.a.OnBegin = func(w *waits.Wait) { b.Begin(w, r.a.Stack(w.Stack)) }
	}
	named := make(chan struct{})
	go func() {
		defer close(named)
		if r.names != nil {
			r.a.ReadNames(r.names) // names before an error are kept
		}
	}()
	ended := make(chan error, 1)
	var in io.Reader = r.main
	if r.opt.Keep != nil {
		in = io.TeeReader(r.main, r.opt.Keep)
	}
	go func() { ended <- r.a.Read(in) }()
	err := r.wait(ctx, ended)
	images(r.a.Names, r.c.PID)
	r.stop(r.names, named)
	follow.close()
	r.a.OnWait, r.a.OnBegin = nil, nil
	if r.opt.Blocked != nil {
		r.a.OnWait = r.opt.Blocked.End // open waits have native frames too
	}
	r.a.Finish()
	r.a.OnWait = nil
	return err
}

// wait waits until the main session has ended or was stopped.
func (r *run) wait(ctx context.Context, ended chan error) error {
	select {
	case err := <-ended:
		r.main.Close()
		return err
	case <-ctx.Done():
	}
	images(r.a.Names, r.c.PID)
	stopped := make(chan error, 1)
	go func() { stopped <- r.main.Stop() }()
	defer r.main.Close()
	select {
	case err := <-ended:
		return err
	case <-time.After(patience):
		r.main.Close()
		return <-ended
	}
}

// stop ends the session of names.
func (r *run) stop(s *diagnostics.Session, done chan struct{}) {
	if s == nil {
		return
	}
	go s.Stop()
	select {
	case <-done:
	case <-time.After(2 * time.Second):
	}
	s.Close()
	<-done
}
