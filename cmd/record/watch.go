package record

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/seedwalk/seedwalk/cmd/record/options"
	"github.com/seedwalk/seedwalk/report/collect"
	"github.com/seedwalk/seedwalk/report/export"
	"github.com/seedwalk/seedwalk/report/recording"
)

// linger is how long a part of a recording waits after its end for samples from before it: an idle thread has
// one every few seconds.
const linger = 5 * time.Second

// watch follows the command to its end, or to the second INT, on the goroutine that runs the recording. It
// handles signals, the time limit, and progress, and starts settle on another goroutine. It returns the
// result.
func (r *run) watch() *options.Result {
	var tick <-chan time.Time
	if r.opt.Progress != nil { // otherwise no timer is needed
		t := time.NewTicker(progressEvery)
		defer t.Stop()
		tick = t.C
	}
	var live <-chan time.Time
	if r.opt.Live != nil {
		t := time.NewTicker(r.opt.LiveEvery)
		defer t.Stop()
		live = t.C
	}
	ended := r.opt.Stop
	var (
		stop     <-chan time.Time // when to settle although the command continues
		settled  = make(chan struct{})
		settling bool
		exited   = r.exited
		left     <-chan struct{} // closed when no process that the command left running is recorded any more
		ending   = make(chan struct{})
		began    time.Time
		ints     int
	)
	settle := func() {
		if !settling {
			settling, left = true, nil
			close(ending)
			hurried, done := ints > 0, settled
			go func() { r.settle(hurried); close(done) }()
		}
	}
	for {
		select {
		case sig := <-r.signals.c:
			r.forward(sig)
			if !endsRecording(sig, r.cmd != nil && left == nil) {
				continue
			}
			if ints++; ints > 1 {
				return r.quit()
			}
			if stop = time.After(r.opt.Grace); left != nil {
				settle()
			}
		case <-r.srv.started:
			began = time.Unix(0, r.srv.began.Load())
			if part := &r.opt.Part; part.Set() {
				stop = time.After(time.Until(part.Until) + linger)
				r.srv.endAt(part.Until)
			}
			if r.opt.Duration > 0 && ints == 0 {
				stop = time.After(r.opt.Duration - time.Since(began))
				r.srv.endAt(began.Add(r.opt.Duration))
			}
		case <-stop:
			settle()
		case <-ended:
			ended = nil
			settle()
		case <-live:
			if !settling {
				p, _ := r.build(r.opt.Namer)
				r.opt.Live(p)
			}
		case <-exited:
			exited = nil
			if r.cmd != nil && ints == 0 && !settling {
				left = r.followLeft(ending)
			}
			if left == nil {
				settle()
			}
		case <-left:
			settle()
		case <-settled:
			settled = nil
			if r.cmd == nil {
				exited = nil // a process that continues
			}
			r.show(began, "done")
		case <-tick:
			r.show(began, stage(settling, !began.IsZero()))
		}
		if settled == nil && exited == nil {
			r.result.ExitCode = r.finalCode()
			return &r.result
		}
	}
}

func stage(settling, connected bool) string {
	switch {
	case settling:
		return "writing"
	case connected:
		return "recording"
	}
	return "waiting for the profiler"
}

func (r *run) show(began time.Time, stage string) {
	if r.opt.Progress == nil {
		return
	}
	p := r.srv.count()
	p.Stage = stage
	if !began.IsZero() {
		p.Elapsed = time.Since(began)
	}
	r.opt.Progress(p)
}

// settle drains the connections and writes the outputs. Looking up names of native functions takes
// time. So after an INT, the outputs are first written without names, and a second INT loses nothing.
func (r *run) settle(hurried bool) {
	r.noteLeft()
	r.srv.settle()
	if len(r.srv.all()) == 0 {
		if !r.srv.refusedToldWhy() {
			r.opt.Say(r.neverConnected())
		}
		if older := olderOutputs(r.opt.Outputs); older != "" {
			r.opt.Say("not replaced, from an earlier recording: " + older)
		}
		return
	}
	if hurried {
		r.write(nil, false)
	}
	r.write(r.opt.Namer, true)
	if line := r.empty(); line != "" {
		r.opt.Say(line)
	}
}

// olderOutputs lists the outputs that exist although this recording has written none.
func olderOutputs(outputs []options.Output) string {
	var older []string
	for _, o := range outputs {
		if info, err := os.Stat(o.Path); err == nil && info.Mode().IsRegular() && info.Size() > 0 {
			older = append(older, filepath.Base(o.Path))
		}
	}
	return strings.Join(older, ", ")
}

// write builds the profile and saves the outputs; those that cannot be written twice (the standard output,
// pipes) only if final.
func (r *run) write(n options.Namer, final bool) {
	var names *recording.Keeper
	if final && n != nil && len(r.srv.recordings) > 0 {
		names = recording.NewKeeper(n)
		n = names
	}
	p, info := r.build(n)
	r.saving.Lock()
	defer r.saving.Unlock()
	if r.final {
		return
	}
	r.final = final
	var written []options.Written
	for _, o := range r.opt.Outputs {
		if o.Format.Name == export.RecordingFile.Name {
			continue
		}
		if !final && !replaceable(o.Path) {
			continue
		}
		written = append(written,
			r.files.Save(o, r.stdout(), func(w io.Writer) error { return o.Format.Write(w, p) }))
	}
	if final {
		written = append(written, r.finishFiles(info, names)...)
	}
	r.publish(p, written)
}

func replaceable(path string) bool {
	info, err := os.Stat(path)
	return path != "-" && (err != nil || info.Mode().IsRegular())
}

func (r *run) stdout() io.Writer {
	if r.opt.Stdout != nil {
		return r.opt.Stdout
	}
	return os.Stdout
}

// quit handles the second INT: the outputs are written at once, without names, unless that has been done, and
// the command continues unrecorded.
func (r *run) quit() *options.Result {
	r.srv.settle()
	if len(r.srv.all()) > 0 {
		r.write(nil, true)
	}
	r.files.RemoveAll()
	r.mu.Lock()
	defer r.mu.Unlock()
	res := r.result
	res.ExitCode = options.ExitSignal + int(syscall.SIGINT)
	return &res
}

// finalCode returns the command's exit code if that is not 0. Otherwise it returns ExitRefused if a
// result could not be written anywhere, or there are no samples although they are required.
func (r *run) finalCode() int {
	if r.code != 0 {
		return r.code
	}
	for _, w := range r.result.Written {
		if w.Path == "" {
			return options.ExitRefused
		}
	}
	if c := r.srv.count(); r.opt.FailEmpty && c.Samples+c.Events == 0 ||
		r.opt.PID != 0 && r.unseenWaits() != "" {
		return options.ExitRefused
	}
	return 0
}

// dropFiles removes the files of a recording without processes.
func (s *server) dropFiles() {
	for _, f := range s.recordings {
		f.Drop()
	}
	s.recordings = nil
}

// beginFiles writes the description of the recording to the recording files.
func (r *run) beginFiles() {
	info := r.info(nil, "")
	for _, f := range r.srv.recordings {
		if err := f.Begin(&info); err != nil {
			r.opt.Say(fmt.Sprintf("cannot write %s: %s", f.Out.Path, options.Reason(err)))
		}
	}
}

// finishFiles completes the recording files.
func (r *run) finishFiles(info *collect.Info, names *recording.Keeper) (all []options.Written) {
	for _, f := range r.srv.recordings {
		all = append(all, f.Finish(info, names))
	}
	r.srv.recordings = nil
	return all
}

// endsRecording reports whether a signal ends the recording. SIGTERM and SIGHUP are passed on to a
// command that runs; the recording ends when the command does.
func endsRecording(sig os.Signal, commandRuns bool) bool {
	return sig == syscall.SIGINT || !commandRuns && (sig == syscall.SIGTERM || sig == syscall.SIGHUP)
}
