package record

import (
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/seedwalk/seedwalk/report/collect"
	"github.com/seedwalk/seedwalk/report/export"
	"github.com/seedwalk/seedwalk/report/recording"
	"github.com/seedwalk/seedwalk/report/wire"
)

// partialSuffix ends the name of a recording file that is being written. After a crash of the
// tool, that file has all but the last second.
const partialSuffix = ".partial"

// flushEvery bounds what a crash of the tool costs.
const flushEvery = time.Second

// fileWriter writes recording files while the recording goes on.
type fileWriter struct {
	out  Output
	temp string // "" if it writes to its place directly
	file *os.File
	w    *recording.Writer

	mu     sync.Mutex
	number uint64 // of the last process
	stop   chan struct{}
}

// openFiles begins the recording files among the outputs.
func (o *Options) openFiles() (all []*fileWriter, err error) {
	for _, out := range o.Outputs {
		if out.Format.Name != export.RecordingFile.Name {
			continue
		}
		f, err := openFile(out, o.Stdout)
		if err != nil {
			for _, f := range all {
				f.drop()
			}
			return nil, &Refusal{What: "cannot write: " + reason(err), Where: out.Path, Remedy: "choose another place with --output", Code: ExitRefused}
		}
		all = append(all, f)
	}
	return all, nil
}

func openFile(out Output, stdout *os.File) (*fileWriter, error) {
	f := &fileWriter{out: out, stop: make(chan struct{})}
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
		f.file, err = os.OpenFile(f.temp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, modeFor(out.Path))
	}
	if err != nil {
		return nil, err
	}
	f.w = recording.NewWriter(f.file)
	go f.flush()
	return f, nil
}

// flush writes what has come, each second.
func (f *fileWriter) flush() {
	tick := time.NewTicker(flushEvery)
	defer tick.Stop()
	for {
		select {
		case <-f.stop:
			return
		case <-tick.C:
			f.w.Flush()
		}
	}
}

// add introduces a process and returns where its messages go.
func (f *fileWriter) add(p *collect.Process) func(m wire.Message) {
	f.mu.Lock()
	f.number++
	number := f.number
	f.mu.Unlock()
	f.w.Process(number, p)
	return func(m wire.Message) { f.w.Message(number, m) }
}

// finish completes the file and moves it to its place.
func (f *fileWriter) finish(info *collect.Info, names *recording.Keeper) Written {
	w := Written{Output: f.out, Path: f.out.Path}
	close(f.stop)
	if names != nil {
		names.Write(f.w)
	}
	w.Err = f.w.Info(info)
	if err := f.w.End(); w.Err == nil {
		w.Err = err
	}
	if f.out.Path != "-" {
		if err := f.file.Close(); w.Err == nil {
			w.Err = err
		}
	}
	if f.temp == "" {
		return w
	}
	if w.Err == nil {
		w.Err = os.Rename(f.temp, f.out.Path)
	}
	if w.Err != nil {
		w.Path = f.temp // it may have a part
	}
	return w
}

// drop removes a file of a recording that did not begin.
func (f *fileWriter) drop() {
	close(f.stop)
	if f.temp != "" {
		f.file.Close()
		os.Remove(f.temp)
	}
}

// dropFiles removes the files of a recording without processes.
func (s *server) dropFiles() {
	for _, f := range s.recordings {
		f.drop()
	}
	s.recordings = nil
}

// beginFiles writes what is known at the start.
func (r *run) beginFiles() {
	info := r.info(nil, "")
	for _, f := range r.srv.recordings {
		if err := f.w.Info(&info); err != nil {
			r.opt.Say(fmt.Sprintf("cannot write %s: %s", f.out.Path, reason(err)))
		}
	}
}

// finishFiles completes the recording files.
func (r *run) finishFiles(info *collect.Info, names *recording.Keeper) (all []Written) {
	for _, f := range r.srv.recordings {
		all = append(all, f.finish(info, names))
	}
	r.srv.recordings = nil
	return all
}
