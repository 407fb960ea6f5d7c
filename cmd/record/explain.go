package record

import (
	"fmt"
	"runtime"
	"strings"

	"github.com/seedwalk/seedwalk/cmd/record/options"
	"github.com/seedwalk/seedwalk/process/program"
	"github.com/seedwalk/seedwalk/report/export"
	"github.com/seedwalk/seedwalk/sample/probe"
)

// neverConnected returns in one line why no profiler may have connected: a reason that the tool can
// see, or else the most likely ones.
func (r *run) neverConnected() string {
	o := r.opt
	const head = "no samples: no .NET runtime loaded seedwalk's library; "
	if notes := r.srv.userNotes(); len(notes) > 0 {
		return head + strings.Join(notes, "; ")
	}
	if o.PID != 0 {
		return head + "the process ended"
	}
	if o.Mode == options.ModeProbe && !options.NeedsLibrary {
		return "no samples: the command started no process of .NET 10 or later that could be read; try --mode snapshot"
	}
	if lines := options.Blockers(o.Env); len(lines) > 0 {
		return head + strings.Join(lines, "; ")
	}
	if why := o.Unsupported(); why != "" {
		return head + why
	}
	if why := r.endedAtOnce(); why != "" {
		return "no samples: " + why + " before a .NET runtime loaded seedwalk's library"
	}
	if pid := r.srv.lastAsked(); pid != 0 {
		return fmt.Sprintf("no samples: process %d loaded the probe, which did not connect; most likely, the process can create a file neither in memory nor in /dev/shm: %s",
			pid, options.SharedFileRemedy)
	}
	if why := program.LibraryProblem(o.Profiler, runtime.GOOS, runtime.GOARCH); why != "" {
		return head + o.Profiler + " cannot be a profiler here: " + why
	}
	if other := options.OtherProfiler(o.Env); other != "" {
		return head + "the most likely reason: " + other +
			" is set, and a runtime before .NET 6 loads only one profiler; unset it for this command"
	}
	return head + "either the command starts no program of " + program.Least(runtime.GOOS) +
		" or later, or it changes that program's environment" + refusalLog + ": try `seedwalk doctor -- " +
		o.Command[0] + "`"
}

// publish keeps the results. The first time that an output cannot be written to its place, it reports
// where the result is, or that it is lost.
func (r *run) publish(p *export.Profile, written []options.Written) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, w := range written {
		if w.Err == nil || r.announced[w.Output.Path] {
			continue
		}
		r.announced[w.Output.Path] = true
		if w.Path != "" {
			r.opt.Say(fmt.Sprintf("cannot write %s: %s; the result is in %s", w.Output.Path,
				options.Reason(w.Err), w.Path))
		} else {
			r.opt.Say(fmt.Sprintf("cannot write %s or any other file: %s; the result is lost",
				w.Output.Path, options.Reason(w.Err)))
		}
	}
	r.result.Profile = p
	r.result.Written = written
	r.result.PIDs = nil
	for _, q := range r.srv.all() {
		if len(r.result.PIDs) == 0 {
			q.Mu.RLock()
			r.result.Farewell = q.Farewell()
			q.Mu.RUnlock()
		}
		r.result.PIDs = append(r.result.PIDs, q.PID)
	}
}

// empty returns in one line why a recording has no samples and no events although profilers connected,
// "" if it has some.
func (r *run) empty() string {
	if c := r.srv.count(); c.Samples > 0 || c.Events > 0 {
		return ""
	}
	if r.noSamples() {
		if why := r.unseenWaits(); why != "" {
			return why
		}
		return fmt.Sprintf("no events: nothing that --events %s records happened during the recording", r.opt.Events)
	}
	for _, p := range r.srv.all() {
		p.Mu.RLock()
		line := p.WhyEmpty()
		p.Mu.RUnlock()
		if line != "" {
			return "no samples: " + line
		}
	}
	return "no samples: the profiler connected and sent none; the command ended too soon, or none of its threads ran managed code"
}

// noSamples reports whether no samples were requested, only events, and no process has a note or a
// failure.
func (r *run) noSamples() bool {
	w, _ := r.opt.Events.Parse()
	if w.CPU || w.Wall {
		return false
	}
	for _, p := range r.srv.all() {
		p.Mu.RLock()
		bad := p.Troubled()
		p.Mu.RUnlock()
		if bad {
			return false
		}
	}
	return true
}

// unseenWaits returns why there are no events if only waits were requested and a runtime cannot report
// them, "" otherwise.
func (r *run) unseenWaits() string {
	if w, _ := r.opt.Events.Parse(); w.CPU || w.Wall || w.Events != probe.WaitEvents ||
		r.srv.count().Events > 0 {
		return ""
	}
	for _, p := range r.srv.all() {
		p.Mu.RLock()
		why := p.UnseenWaits()
		p.Mu.RUnlock()
		if why != "" {
			return why
		}
	}
	return ""
}
