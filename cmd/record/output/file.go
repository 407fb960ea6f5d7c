package output

import (
	"errors"
	"os"
	"sync"
	"time"

	"github.com/seedwalk/seedwalk/cmd/record/options"
	"github.com/seedwalk/seedwalk/report/collect"
	"github.com/seedwalk/seedwalk/report/export"
	"github.com/seedwalk/seedwalk/report/recording"
	"github.com/seedwalk/seedwalk/report/wire"
)

// partialSuffix ends the name of a recording file that is being written. After a crash of the
// tool, that file has all but the last second.
const partialSuffix = ".partial"

// flushEvery bounds how much a crash of the tool loses.
const flushEvery = time.Second

var errBusy = errors.New("another recording is writing there")

// Recording writes recording files during the recording.
type Recording struct {
	Out  options.Output
	temp string   // "" if it writes to its place directly
	lock *os.File // of temp, until it is at its place; nil = not locked
	file *os.File
	w    *recording.Writer

	mu     sync.Mutex
	number uint64 // of the last process
	stop   chan struct{}
}

// OpenRecordings begins the recording files among the outputs.
func OpenRecordings(outputs []options.Output, stdout *os.File) (all []*Recording, err error) {
	for _, out := range outputs {
		if out.Format.Name != export.RecordingFile.Name {
			continue
		}
		f, err := openRecording(out, stdout)
		if err != nil {
			for _, f := range all {
				f.Drop()
			}
			return nil, &options.Refusal{What: "cannot write: " + options.Reason(err), Where: out.Path,
				Remedy: "choose another place with --output", Code: options.ExitRefused, Err: err}
		}
		all = append(all, f)
	}
	return all, nil
}

func openRecording(out options.Output, stdout *os.File) (*Recording, error) {
	f := &Recording{Out: out, stop: make(chan struct{})}
	var err error
	switch info, statErr := os.Stat(out.Path); {
	case out.Path == "-" && stdout != nil:
		f.file = stdout
	case out.Path == "-":
		f.file = os.Stdout
	case statErr == nil && !info.Mode().IsRegular():
		f.file, err = os.OpenFile(out.Path, os.O_WRONLY, 0)
	default:
		f.temp = out.Path + partialSuffix
		f.file, f.lock, err = createPartial(f.temp, modeFor(out.Path))
	}
	if err != nil {
		return nil, err
	}
	f.w = recording.NewWriter(f.file)
	go f.flush()
	return f, nil
}

// flush writes the buffered messages every flushEvery.
func (f *Recording) flush() {
	for {
		select {
		case <-f.stop:
			return
		case <-time.After(untilFlush(time.Now())):
			f.w.Flush()
		}
	}
}

// untilFlush returns the time until the next flush. All recordings of the tool flush at the same moments,
// between which the tool can sleep.
func untilFlush(now time.Time) time.Duration {
	return flushEvery - time.Duration(now.UnixNano())%flushEvery
}

// Begin writes the description of the recording, as far as it is known at the start.
func (f *Recording) Begin(info *collect.Info) error { return f.w.Info(info) }

// Add introduces a process and returns where its messages go.
func (f *Recording) Add(p *collect.Process) func(m wire.Message) {
	f.mu.Lock()
	f.number++
	number := f.number
	f.mu.Unlock()
	f.w.Process(number, p)
	return func(m wire.Message) { f.w.Message(number, m) }
}

// Finish completes the file and moves it to its place.
func (f *Recording) Finish(info *collect.Info, names *recording.Keeper) options.Written {
	w := options.Written{Output: f.Out, Path: f.Out.Path}
	close(f.stop)
	defer f.lock.Close() // lock may be nil: then Close returns an error
	if names != nil {
		names.Write(f.w)
	}
	w.Err = f.w.Info(info)
	if err := f.w.End(); w.Err == nil {
		w.Err = err
	}
	here, _ := f.file.Stat()
	if f.Out.Path != "-" {
		if err := f.file.Close(); w.Err == nil {
			w.Err = err
		}
	}
	if f.temp == "" {
		return w
	}
	there, err := os.Lstat(f.temp)
	if err == nil && !os.SameFile(here, there) { // where the file system has no locks
		w.Err, w.Path = errBusy, ""
		return w
	}
	if w.Err == nil {
		w.Err = os.Rename(f.temp, f.Out.Path)
	}
	if w.Err == nil {
		return w
	}
	w.Path = f.temp // it may contain a part
	if _, err := os.Stat(f.temp); err != nil {
		w.Path = "" // it was moved away
	}
	return w
}

// Drop removes the file: the recording did not begin.
func (f *Recording) Drop() {
	close(f.stop)
	if f.temp != "" {
		f.file.Close()
		os.Remove(f.temp)
		f.lock.Close()
	}
}
