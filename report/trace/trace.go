package trace

import (
	"bufio"
	"compress/gzip"
	"errors"
	"fmt"
	"io"

	"github.com/seedwalk/seedwalk/eventpipe/nettrace"
	"github.com/seedwalk/seedwalk/eventpipe/nettrace/clrevent"
	"github.com/seedwalk/seedwalk/eventpipe/pool"
	"github.com/seedwalk/seedwalk/eventpipe/waits"
	"github.com/seedwalk/seedwalk/internal/intern"
	"github.com/seedwalk/seedwalk/report/export"
)

// Limits of a Trace.
const (
	maxFolds   = 1 << 18
	maxTexts   = 1 << 14
	maxSamples = 1 << 19
	maxWaits   = 1 << 15
	maxThreads = 1 << 18
)

// ErrOtherProcess means that two traces are of different processes.
var ErrOtherProcess = errors.New("the trace is of another process than the first one")

// ErrNotTrace means that the bytes are not a trace of a known version.
var ErrNotTrace = errors.New("this is not a .nettrace trace")

// Trace collects traces of one process, from files that .NET's tools wrote. Create it with New,
// call Read for each trace, and then call Profile. It is not safe for concurrent use.
type Trace struct {
	Names *waits.Names
	files []*file
	texts map[string]int32
	all   []string // texts by index
}

// file is one trace.
type file struct {
	*waits.Analysis
	t       *Trace
	folds   map[foldKey]int32
	sums    []fold
	samples []export.Sample
	untimed int64
	events  [export.NumEvents]export.EventStats
	other   map[*nettrace.Metadata]int32 // texts
	threads map[uint64]*thread
	sampler sampler
	pauses  []pause
	queue   pool.Queue[foldKey]
	damaged int64 // events with an unreadable payload

	lists    [export.NumEvents][]export.Wait // the longest of each kind; Stack is an index of sums
	unlisted int64                           // shorter ones
}

// thread is what is known of a thread while its events are read.
type thread struct {
	pass  int64 // the sampler's latest pass with a sample of the thread
	jits  []jit // compilations in progress
	pause pause
}

// foldKey is what equal events have in common.
type foldKey struct {
	thread        uint64
	stack         waits.StackID
	typ, message  int32
	owner         int32
	event         export.Event
	open, monitor bool
}

// fold is a sum of equal events.
type fold struct {
	foldKey
	when                                 uint64 // timestamp of the first one
	count, sum, longest, cpu, wall, cpus int64
}

// New returns an empty Trace.
func New() *Trace {
	return &Trace{Names: waits.NewNames(), texts: map[string]int32{}, all: []string{""}}
}

// IsTrace reports whether the bytes that follow are those of a trace, which may be compressed.
func IsTrace(in *bufio.Reader) bool {
	head, _ := in.Peek(24)
	return len(head) >= 2 && head[0] == 0x1f && head[1] == 0x8b ||
		len(head) >= 8 && string(head[:8]) == "Nettrace" ||
		len(head) == 24 && string(head[4:]) == "!FastSerialization.1"
}

// Read reads a trace, which may be compressed with gzip. It keeps everything that it read. The
// error is ErrOtherProcess, ErrNotTrace, or the reason why the trace is incomplete.
func (t *Trace) Read(in *bufio.Reader) error {
	f := &file{Analysis: waits.New(), t: t, folds: map[foldKey]int32{}, other: map[*nettrace.Metadata]int32{},
		threads: map[uint64]*thread{}}
	f.Names, f.List = t.Names, maxWaits
	f.OnEvent, f.OnWait = f.event, f.wait
	var src io.Reader = in
	if head, _ := in.Peek(2); len(head) == 2 && head[0] == 0x1f {
		z, err := gzip.NewReader(in)
		if err != nil {
			return err
		}
		src = z
	}
	f.Analysis.Read(src)
	f.Finish()
	var damage *nettrace.Error
	if errors.As(f.Ended, &damage) && damage.Reason == nettrace.NotNettrace && damage.What == "" {
		return ErrNotTrace
	}
	f.addPauses()
	if len(t.files) > 0 && f.Trace.ProcessID != t.files[0].Trace.ProcessID {
		return ErrOtherProcess
	}
	if f.Trace.Frequency != 0 {
		t.files = append(t.files, f)
	}
	if line := f.PartialLine(); line != "" {
		return errors.New(line)
	}
	if f.damaged > 0 {
		return fmt.Errorf("%d runtime events could not be read", f.damaged)
	}
	return nil
}

// text returns the index of a text, and that of other if there are too many distinct ones.
func (t *Trace) text(s, other string) int32 {
	if s == "" {
		return 0
	}
	if _, ok := t.texts[s]; !ok && len(t.all) >= maxTexts {
		s = other
	}
	return intern.Value(t.texts, &t.all, s)
}

func (f *file) thread(id uint64) *thread {
	th := f.threads[id]
	if th == nil {
		if len(f.threads) >= maxThreads {
			clear(f.threads)
		}
		th = &thread{}
		f.threads[id] = th
	}
	return th
}

// at returns the index of a key's fold. Beyond maxFolds, all new keys of one event share one fold, without
// thread, stack, and type.
func (f *file) at(k foldKey, when uint64) int32 {
	if _, ok := f.folds[k]; !ok && len(f.sums) >= maxFolds {
		k = foldKey{event: k.event, stack: waits.LostStack}
	}
	return intern.At(f.folds, &f.sums, k, func() fold { return fold{foldKey: k, when: when} })
}

// add adds one event of the runtime.
func (f *file) add(k foldKey, when uint64, amount int64) {
	s := &f.sums[f.at(k, when)]
	s.count++
	s.sum += amount
	s.longest = max(s.longest, amount)
	e := &f.events[k.event]
	e.Seen++
	e.Count++
	e.Sum += amount
	e.Longest = max(e.Longest, amount)
	if f.whole(k.stack) {
		e.Complete++
	}
	if k.open {
		e.Open++
	}
}

// wait adds a wait, unless another one encloses it or its times are unreliable.
func (f *file) wait(w *waits.Wait) {
	if w.Depth > 0 || w.State == waits.Unreliable {
		return
	}
	f.add(waitKey(w), w.Start, w.Nanos)
}

func waitKey(w *waits.Wait) foldKey {
	k := foldKey{event: export.EventWait, thread: w.Thread, stack: w.Stack, open: w.State == waits.StillOpen,
		monitor: w.Kind == waits.Monitor}
	if w.Kind == waits.Lock {
		k.event, k.owner = export.EventLock, int32(w.Owner)
	}
	return k
}

// event adds an event that is not a wait.
func (f *file) event(kind clrevent.Kind, e *nettrace.Event) {
	ok := true
	switch kind {
	case clrevent.CPUSample:
		ok = f.sample(e)
	case clrevent.AllocationTick, clrevent.AllocationSampled:
		ok = f.allocation(kind, e)
	case clrevent.ExceptionThrown:
		x, decoded := clrevent.DecodeException(e.Payload, f.Trace.PointerSize)
		f.timed(foldKey{event: export.EventException, thread: e.Thread, stack: f.StackOf(e),
			typ: f.t.text(x.Type, otherTypes), message: f.t.text(x.Message, otherMessages)}, e.Timestamp,
			e.Timestamp)
		ok = decoded
	case clrevent.CollectionStart, clrevent.SuspendStart, clrevent.RestartEnd:
		ok = f.collection(kind, e)
	case clrevent.JITStart, clrevent.MethodLoad:
		ok = f.compiled(kind, e)
	case clrevent.WorkQueued, clrevent.WorkTaken:
		ok = f.work(kind, e)
	case clrevent.PoolAdjusted:
		ok = f.adjusted(e)
	case clrevent.None:
		f.others(e)
	}
	if !ok {
		f.damaged++
	}
}

// Texts that replace new ones beyond maxTexts.
const (
	otherTypes    = "(other types)"
	otherMessages = "(other messages)"
	otherEvents   = "(other events)"
)
