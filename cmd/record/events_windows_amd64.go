package record

import (
	"os"
	"path/filepath"

	"github.com/seedwalk/seedwalk/sample/probe"
)

// noEvents reports why the runtime's events cannot be had, "" if they can: in a process
// that we start the library that the snapshot mode needs copies them.
func (o *Options) noEvents() string {
	if o.PID != 0 {
		return "nothing of seedwalk is in a process that was started before, where the runtime's events are delivered"
	}
	if abs, err := filepath.Abs(o.Profiler); err == nil && o.Profiler != "" {
		o.Profiler = abs
	}
	if _, err := os.Stat(o.Profiler); err != nil {
		return "the runtime's events are copied by the profiler library, which cannot be read: " + reason(err)
	}
	return ""
}

// share makes what the first of the command's processes of .NET shares with us, if
// events are wanted.
func (o *Options) share() error {
	w, _ := o.Events.parse()
	if w.events == 0 || o.Mode != ModeProbe {
		return nil
	}
	f, err := probe.Make()
	if err != nil {
		return err
	}
	f.Want(w.events, uint64(o.WaitMin))
	o.shared, o.section = f, f.Name
	return nil
}
