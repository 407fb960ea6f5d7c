// Package continuous records processes without an end: it finds them as they come, records
// each in intervals at a low rate, keeps the recordings in a bounded folder, and sends them
// to a backend.
//
// Sources: proc(5); getrusage(2); the HTTP interface of Pyroscope (POST /ingest); OpenTelemetry's
// docs/specification.md of the protocol, and grpc/grpc doc/PROTOCOL-HTTP2.md; OpenTelemetry's
// environment variables for resources.
//
// Glossary. A target is a process that the rules choose. An interval is one recording of a
// target. The spool is the folder of profiles that wait for the backend.
//
// Strategy. One goroutine lists processes and starts a goroutine for each target, which
// records interval after interval. A second one watches what the agent itself uses, and
// lowers the rate of later intervals. A third one sends the oldest file of the spool, and
// deletes it once the backend has it. Recording never waits for the backend: if the spool is
// full, the oldest file goes, and is counted.
//
// Known gaps: while an interval is written, and the next one begins, a target is not recorded
// (Counters.Unrecorded adds that time up). Linux only.
package continuous

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/seedwalk/seedwalk/report/export"
)

// Limits of the agent.
const (
	MaxTargets = 64              // recorded at once; others wait, and are counted
	minAge     = 2 * time.Second // younger processes are left alone
	scanEvery  = 2 * time.Second
	maxRetry   = 10 * time.Minute // between two tries at a process that cannot be recorded
)

// Interval is one recording to be made.
type Interval struct {
	PID       int
	Rate      float64
	Duration  time.Duration
	Recording string        // file to write, "" for none
	Profile   string        // file of the spool to write, "" for none
	Format    export.Format // of Profile
	Stop      <-chan struct{}
	Say       func(line string)
}

// Recorder makes one recording and returns how many samples it has, and how long samples
// could come.
type Recorder func(i Interval) (samples int64, recorded time.Duration, err error)

// Config is what the agent does. Record and Folder must be set.
type Config struct {
	Record      Recorder
	Rules       Rules
	Rate        float64       // samples per second and thread at most
	Interval    time.Duration // of one recording
	Folder      string        // of recordings and of the spool
	FolderBytes int64         // bound of the recordings
	SpoolBytes  int64         // bound of the spool
	Push        string        // address of the backend, "" for none
	PushToken   string        // sent as a bearer token if it is not empty
	CPU         float64       // budget: share of one core
	MemoryBytes int64         // budget
	Say         func(line string)
}

// Agent records targets as they come and go.
type Agent struct {
	cfg    Config
	store  *folder
	spool  *folder
	pusher *pusher
	budget *budget
	count  Counters

	mu      sync.Mutex
	targets map[int]bool // being recorded
	waiting int          // targets beyond MaxTargets
	scanned time.Time
	wait    sync.WaitGroup
}

// New prepares the folders. Files that an earlier agent left are kept, and count.
func New(cfg Config) (*Agent, error) {
	a := &Agent{cfg: cfg, targets: map[int]bool{}, budget: newBudget(cfg.Rate, cfg.CPU, cfg.MemoryBytes)}
	a.store = &folder{dir: cfg.Folder, suffix: ".swrec", bound: cfg.FolderBytes, dropped: &a.count.StoreDropped}
	a.spool = &folder{dir: filepath.Join(cfg.Folder, "spool"), bound: cfg.SpoolBytes, dropped: &a.count.SpoolDropped}
	var err error
	if a.pusher, err = newPusher(&a.cfg, a.spool, &a.count); err != nil {
		return nil, err
	}
	a.spool.suffix = a.pusher.suffix()
	if err := os.MkdirAll(a.spool.dir, 0o700); err != nil {
		return nil, err
	}
	a.recover()
	return a, nil
}

// recover completes what an agent that was killed has left: its recordings have all but the
// last second, its unfinished profiles are worth nothing. Profiles for a backend of another
// protocol are dropped too.
func (a *Agent) recover() {
	parts, _ := filepath.Glob(filepath.Join(a.spool.dir, "*.*"))
	for _, path := range parts {
		if !strings.HasSuffix(path, a.spool.suffix) && os.Remove(path) == nil {
			a.count.SpoolDropped.Add(1)
		}
	}
	partial, _ := filepath.Glob(filepath.Join(a.store.dir, "*"+a.store.suffix+".partial"))
	for _, path := range partial {
		os.Rename(path, strings.TrimSuffix(path, ".partial"))
	}
	a.store.trim()
	a.spool.trim()
}

// Run records until stop is closed, and returns when all recordings are written.
func (a *Agent) Run(stop <-chan struct{}) {
	if a.cfg.Push != "" {
		a.wait.Go(func() { a.pusher.run(stop) })
	}
	a.wait.Go(func() { a.budget.run(stop, a.cfg.Say) })
	finder := newFinder(a.cfg.Rules)
	tick := time.NewTicker(scanEvery)
	defer tick.Stop()
	for {
		a.start(finder.find(time.Now()), stop)
		select {
		case <-stop:
			a.wait.Wait()
			return
		case <-tick.C:
		}
	}
}

// start begins to record processes that are not recorded yet.
func (a *Agent) start(found []process, stop <-chan struct{}) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.scanned, a.waiting = time.Now(), 0
	for _, p := range found {
		switch {
		case a.targets[p.pid]:
		case len(a.targets) >= MaxTargets:
			a.waiting++
		default:
			a.targets[p.pid] = true
			a.count.Targets.Add(1)
			a.wait.Go(func() {
				a.follow(p, stop)
				a.mu.Lock()
				delete(a.targets, p.pid)
				a.mu.Unlock()
			})
		}
	}
}

// follow records a process to its end.
func (a *Agent) follow(p process, stop <-chan struct{}) {
	retry := 5 * time.Second
	for alive(p) {
		if a.budget.paused() {
			a.count.Paused.Add(1)
			if !sleep(5*time.Second, stop) {
				return
			}
			continue
		}
		began := time.Now()
		recorded, err := a.record(p, stop)
		a.count.Unrecorded.Add(int64(max(0, time.Since(began)-recorded)))
		select {
		case <-stop:
			return
		default:
		}
		if err == nil {
			retry = 5 * time.Second
			continue
		}
		if !alive(p) {
			return
		}
		if a.count.Failed.Add(1); retry == 5*time.Second {
			a.cfg.Say(fmt.Sprintf("process %d (%s) is not recorded now: %v", p.pid, p.name, err))
		}
		if !sleep(retry, stop) {
			return
		}
		retry = min(2*retry, maxRetry)
	}
}

// record makes one recording and puts its files where they belong.
func (a *Agent) record(p process, stop <-chan struct{}) (time.Duration, error) {
	began := time.Now()
	rate := a.budget.rate()
	end := make(chan struct{})
	defer close(end)
	i := Interval{PID: p.pid, Rate: rate, Duration: a.cfg.Interval, Stop: either(stop, a.budget.cut(), end)}
	base := fmt.Sprintf("%d-%d-%s", began.UnixMilli(), p.pid, p.name)
	if a.cfg.FolderBytes > 0 {
		i.Recording = filepath.Join(a.store.dir, base+a.store.suffix)
	}
	if a.cfg.Push != "" {
		i.Profile = filepath.Join(a.spool.dir, base+partSuffix)
		if i.Format, _ = export.ByName("pprof"); a.spool.suffix == otlpSuffix {
			i.Format = compressedOTLP(resource(p))
		}
	}
	samples, recorded, err := a.cfg.Record(i)
	if err != nil {
		remove(i.Profile)
		return recorded, err
	}
	a.count.Recordings.Add(1)
	a.count.Samples.Add(samples)
	if i.Recording != "" {
		a.store.trim()
	}
	if i.Profile == "" {
		return recorded, nil
	}
	name := spooled{From: began, Until: time.Now(), PID: p.pid, Rate: rate, Name: p.name}.file(a.spool.suffix)
	if samples == 0 {
		remove(i.Profile)
	} else if err := os.Rename(i.Profile, filepath.Join(a.spool.dir, name)); err != nil {
		a.count.SpoolDropped.Add(1)
		return recorded, fmt.Errorf("the profile is lost: %w", err)
	}
	a.spool.trim()
	a.pusher.notify()
	return recorded, nil
}

func remove(path string) {
	if path != "" {
		os.Remove(path)
	}
}

// either returns a channel that is closed when one of the others is.
func either(a, b, end <-chan struct{}) <-chan struct{} {
	c := make(chan struct{})
	go func() {
		select {
		case <-a:
		case <-b:
		case <-end:
		}
		close(c)
	}()
	return c
}

// sleep returns false if stop was closed meanwhile.
func sleep(d time.Duration, stop <-chan struct{}) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-stop:
		return false
	case <-t.C:
		return true
	}
}
