// Package session watches the waits of a running process: EventPipe sessions
// through its diagnostics port, from now on or from its very start.
//
// Sources: those of packages diagnostics and waits; dotnet/runtime
// src/native/eventpipe/ep-session.c (buffers are written out every 100 ms).
//
// Strategy. Three sessions. A short one that asks for nothing but the list of
// methods, for those compiled before we came: its list is written when it is
// stopped. The main one, with the waits and nothing else, so that its buffer is
// theirs; it ends with a list of methods too. And one with methods as they are
// loaded, for the names while the program runs, and for methods that are gone
// at the end. The runtime (9.0.5, measured) may die of a list of compiled methods while
// it unloads some: that list is asked for once, where we come late or the trace is kept;
// else, and again, for precompiled methods only. The rundown provider is never asked for as a provider: it would
// list the methods of the start, and no runtime does.
//
// Glossary. A *rundown* is the list of what exists that a session writes at its end.
//
// Known gaps. Of a process that is killed the list at the end is missing: what
// it compiled since the start is named by the third session only.
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

// Levels: waits for wait handles are reported at 5 only; at 5 the JIT's keyword
// brings what is not needed.
const (
	waitLevel = 5
	nameLevel = 4
)

// patience is how long a stopped session may take to write its list.
const patience = 60 * time.Second

// Options of Run.
type Options struct {
	BufferMB uint32    // of the main session, 0 = 256
	Keep     io.Writer // gets the main session's bytes, if not nil
	AtStart  bool      // the process waits at its start, and is resumed
	Follow   func(*waits.Wait, []waits.Frame)
	Say      func(string)
	Began    func() // nothing that happens from now on is missed
	// Blocked, if not nil, is called for waits that began and have not ended.
	Blocked Watcher
}

// Watcher looks at threads that wait.
type Watcher interface {
	Begin(w *waits.Wait, stack []uint64)
	End(w *waits.Wait)
}

// Run watches a process into an Analysis until ctx is done or the process ends.
// What was seen is in the Analysis whatever is returned.
func Run(ctx context.Context, c *diagnostics.Client, a *waits.Analysis, opt Options) error {
	if opt.Say == nil {
		opt.Say = func(string) {}
	}
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

// waitConfig is of the main session. A trace that is kept has all methods at its end, and the queue
// of the thread pool.
func waitConfig(bufferMB uint32, keep, all bool) diagnostics.Config {
	config := diagnostics.Config{BufferMB: bufferMB, Rundown: precompiledKeywords,
		Providers: []diagnostics.Provider{{Name: clrevent.Runtime, Keywords: waitKeywords, Level: waitLevel}}}
	if keep || all {
		config.Rundown = listKeywords
	}
	if keep {
		config.Providers[0].Keywords |= clrevent.KeywordThreading
		config.Providers = append(config.Providers, diagnostics.Provider{Name: clrevent.Framework, Keywords: clrevent.KeywordThreadPool, Level: waitLevel})
	}
	return config
}

// nameConfig is of the session for methods. pool asks for starvations of the thread pool too.
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

	mapped  time.Time // when images were looked for last
	another bool      // there may be others since
}

// again is how often images are looked for, at most.
const again = 50 * time.Millisecond

// look learns of images that were mapped since, while the process still has them: at its
// end it is too late. w may have frames in one.
func (r *run) look(w *waits.Wait) {
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
	r.a.OnWait = func(w *waits.Wait) {
		r.look(w)
		r.a.Names.Label(w.Thread, func() string { return threadName(r.c.PID, w.Thread) })
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
			r.a.ReadNames(r.names) // what came before an error stands
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
		r.a.OnWait = r.opt.Blocked.End // waits that are still open have native frames too
	}
	r.a.Finish()
	r.a.OnWait = nil
	return err
}

// wait is until the main session has ended by itself or was stopped.
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
