// Package continuous records processes without an end (`seedwalk agent`). It finds processes
// when they start and records each in intervals at a low rate. It keeps the recordings in a
// folder of limited size, and sends them to a backend.
//
// Sources: proc(5); getrusage(2); the HTTP interface of Pyroscope (POST /ingest); OpenTelemetry's
// docs/specification.md of the protocol, and grpc/grpc doc/PROTOCOL-HTTP2.md; OpenTelemetry's
// environment variables for resources.
//
// Glossary. A target is a process that the rules choose. A session samples a target. An interval
// is one recording of a part of its time. The spool is the folder of profiles that wait for the
// backend.
//
// Strategy. One goroutine lists processes and starts a goroutine for each target. The target's
// goroutine starts a session, and a recording for each interval, which gets its samples from the
// session. A recording joins the session some seconds before its interval, and begins when the last
// interval ends. The last recording is written meanwhile, so no sample is lost between the two on a
// busy machine. A second goroutine watches what the agent itself uses, and adapts the rate of later
// sessions. A third one sends the files of the spool, oldest first, and deletes each once the backend
// has accepted it. Recording never waits for the backend: if the spool is full, its oldest file is
// deleted and counted.
//
// Known gaps: a target is not recorded while a session begins or ends: at first, when the rate changes, and
// once an hour. The same holds after a failure, and while the budget is exceeded. Counters.Unrecorded is the
// sum of these times. Linux only.
package continuous

import (
	"cmp"
	"errors"
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
	firstRetry = 5 * time.Second // between two tries at a process that cannot be recorded
	maxRetry   = 10 * time.Minute
	sessionMax = time.Hour       // then a new session begins, without the old tables
	prepare    = 5 * time.Second // how long before its interval a recording joins the session
)

// Interval is one recording to be made.
type Interval struct {
	PID       int
	Rate      float64
	From      time.Time // of the samples
	Until     time.Time
	Recording string        // file to write, "" for none
	Profile   string        // file of the spool to write, "" for none
	Format    export.Format // of Profile
	// Stretches records whether the process was sampled in random stretches of time only. Record calls it.
	Stretches func(on bool)
}

// Session samples a process until Stop is closed, or the process ends. It calls Ready when
// intervals can be recorded.
type Session struct {
	PID   int
	Rate  float64
	Ready func()
	Stop  <-chan struct{}
}

// Config configures an agent. Sample, Record, and Folder must be set.
type Config struct {
	Sample      func(s Session) error
	Record      func(i Interval) (samples int64, err error) // needs a session
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
	targets map[int]process // being recorded
	rarely  map[int]bool    // PIDs of targets whose last interval was sampled in stretches
	waiting int             // targets beyond MaxTargets
	scanned time.Time
	wait    sync.WaitGroup
	showing sync.Mutex
	lock    *os.File // of the folder
}

var errInUse = errors.New("another agent uses this folder")

// New prepares the folders. It returns an error if another agent uses them. Recordings and profiles of
// an earlier agent are kept, and count for the bounds.
func New(cfg Config) (*Agent, error) {
	a := &Agent{cfg: cfg, targets: map[int]process{}, rarely: map[int]bool{},
		budget: newBudget(cfg.Rate, cfg.CPU, cfg.MemoryBytes)}
	a.store = &folder{dir: cfg.Folder, suffix: ".swrec", bound: cfg.FolderBytes,
		dropped: &a.count.StoreDropped}
	a.spool = &folder{dir: filepath.Join(cfg.Folder, "spool"), bound: cfg.SpoolBytes,
		dropped: &a.count.SpoolDropped}
	var err error
	if a.pusher, err = newPusher(&a.cfg, a.spool, &a.count); err != nil {
		return nil, err
	}
	a.spool.suffix = a.pusher.suffix()
	if err := os.MkdirAll(a.spool.dir, 0o700); err != nil {
		return nil, err
	}
	if a.lock, err = lock(filepath.Join(a.spool.dir, "lock")); err != nil {
		return nil, fmt.Errorf("%s: %w", cfg.Folder, err)
	}
	a.recover()
	return a, nil
}

// Close lets another agent use the folder.
func (a *Agent) Close() { a.lock.Close() }

// recover handles the files of an agent that was killed. It completes its recordings, which lack
// the last second at most. It deletes unfinished profiles, and profiles for a backend of another
// protocol.
func (a *Agent) recover() {
	for _, path := range a.spool.ending("") {
		if !strings.HasSuffix(path, a.spool.suffix) && os.Remove(path) == nil {
			a.count.SpoolDropped.Add(1)
		}
	}
	for _, path := range a.store.ending(a.store.suffix + ".partial") {
		os.Rename(path, strings.TrimSuffix(path, ".partial"))
	}
	if a.cfg.FolderBytes > 0 { // otherwise the agent keeps no recordings, and does not delete older ones
		a.store.trim()
	}
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
	for !closed(stop) {
		a.start(finder.find(time.Now()), stop)
		select {
		case <-stop:
		case <-tick.C:
		}
	}
	a.wait.Wait()
}

// start starts a goroutine for each process that is not recorded yet, up to MaxTargets.
func (a *Agent) start(found []process, stop <-chan struct{}) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.scanned, a.waiting = time.Now(), 0
	for _, p := range found {
		switch _, known := a.targets[p.pid]; {
		case known, !alive(p):
		case len(a.targets) >= MaxTargets:
			a.waiting++
		default:
			a.targets[p.pid] = p
			a.count.Targets.Add(1)
			a.wait.Go(func() {
				a.follow(p, stop)
				a.mu.Lock()
				delete(a.targets, p.pid)
				delete(a.rarely, p.pid)
				a.mu.Unlock()
			})
		}
	}
}

// follow records a process until it ends or stop is closed.
func (a *Agent) follow(p process, stop <-chan struct{}) {
	retry := firstRetry
	for alive(p) && !closed(stop) {
		if !a.budget.begin() {
			a.count.Paused.Add(1)
			a.rest(lookEvery, stop)
			continue
		}
		recorded, err := a.session(p, stop)
		if retry = nextRetry(retry, recorded); err != nil && !closed(stop) && a.fail(p, err) {
			a.rest(retry, stop)
		}
	}
}

// rest sleeps while a process is not recorded.
func (a *Agent) rest(d time.Duration, stop <-chan struct{}) {
	began := time.Now()
	sleep(d, stop)
	a.unrecorded(began)
}

// unrecorded adds the time since then to the time of targets without a recording.
func (a *Agent) unrecorded(since time.Time) { a.count.Unrecorded.Add(int64(time.Since(since))) }

// nextRetry returns how long to wait after a session that failed. The wait doubles each time, unless
// the session recorded for longer than the last wait.
func nextRetry(last, recorded time.Duration) time.Duration {
	if recorded > last {
		return firstRetry
	}
	return min(2*last, maxRetry)
}

// session records a process without a gap until it ends, the rate changes, the session is old, or
// stop is closed. It returns how long it recorded.
func (a *Agent) session(p process, stop <-chan struct{}) (recorded time.Duration, err error) {
	rate, end := a.budget.rate(), make(chan struct{})
	ready, over, asked := make(chan struct{}), make(chan error, 1), time.Now()
	go func() {
		over <- a.cfg.Sample(Session{PID: p.pid, Rate: rate,
			Ready: sync.OnceFunc(func() { close(ready) }), Stop: end})
		close(over)
	}()
	select {
	case <-ready:
	case err := <-over:
		close(end)
		a.unrecorded(asked)
		reason := ReasonBegin
		if closed(ready) { // it began, and ended at once
			reason = ReasonEnd
		}
		return 0, &Failure{reason, cmp.Or(err, errEnded)}
	}
	a.unrecorded(asked) // not at the end of the session, which may be an hour later
	var all sync.WaitGroup
	began := time.Now()
	err = a.intervals(p, rate, began, &all, stop, over)
	ended := time.Now()
	close(end) // the intervals get their last samples now
	all.Wait()
	for range over {
	}
	a.unrecorded(ended)
	return ended.Sub(began), err
}

// intervals starts a recording for each interval until the session is over. A recording that
// fails does not end the session.
func (a *Agent) intervals(p process, rate float64, from time.Time, all *sync.WaitGroup,
	stop <-chan struct{}, over <-chan error) error {
	end, last := make(chan struct{}), from.Add(sessionMax)
	defer close(end)
	stop = either(stop, a.budget.cut(), end)
	for {
		begin, until := from, from.Add(a.cfg.Interval)
		all.Go(func() {
			if err := a.record(p, rate, begin, until); err != nil && sleepUntil(begin, end) &&
				a.fail(p, err) {
				sleepUntil(until, end)
				a.count.Unrecorded.Add(int64(min(time.Since(begin), until.Sub(begin))))
			}
		})
		ending := until.After(last) || a.otherRate(rate)
		wait := time.Until(until)
		if !ending {
			wait -= min(prepare, a.cfg.Interval/4)
		}
		select {
		case <-stop:
			return nil
		case err := <-over:
			return &Failure{ReasonEnd, cmp.Or(err, errEnded)}
		case <-time.After(wait):
		}
		if ending {
			return nil
		}
		from = a.next(until, time.Now())
	}
}

// next returns when the interval after until begins. It counts the time since until as unrecorded. If
// the agent was stopped for more than an interval, the next one begins now.
func (a *Agent) next(until, now time.Time) time.Time {
	behind := max(0, now.Sub(until))
	a.count.Unrecorded.Add(int64(behind))
	if behind > a.cfg.Interval+prepare {
		return now
	}
	return until
}

// otherRate reports whether the budget wants a rate that is worth a new session.
func (a *Agent) otherRate(rate float64) bool {
	now := a.budget.rate()
	return now < 0.8*rate || now > 1.25*rate
}

// record makes one recording, and puts its profile into the spool.
func (a *Agent) record(p process, rate float64, from, until time.Time) error {
	i := Interval{PID: p.pid, Rate: rate, From: from, Until: until, Stretches: func(on bool) {
		a.mu.Lock()
		defer a.mu.Unlock()
		if delete(a.rarely, p.pid); on {
			a.rarely[p.pid] = true
		}
	}}
	base := fmt.Sprintf("%013d-%d-%s", from.UnixMilli(), p.pid, p.name)
	if a.cfg.FolderBytes > 0 {
		i.Recording = filepath.Join(a.store.dir, base+a.store.suffix)
	}
	if a.cfg.Push != "" {
		i.Profile = filepath.Join(a.spool.dir, base+partSuffix)
		if i.Format, _ = export.ByName("pprof"); a.spool.suffix == otlpSuffix {
			i.Format = compressedOTLP(resource(p))
		}
	}
	samples, err := a.cfg.Record(i)
	if err == nil && samples == 0 && time.Now().Before(from) { // the session ended before the interval began
		remove(i.Recording)
		remove(i.Profile)
		return nil
	}
	if err != nil {
		remove(i.Profile)
		return err
	}
	a.count.Recordings.Add(1)
	a.count.Samples.Add(samples)
	if i.Recording != "" {
		a.store.trim()
	}
	if i.Profile == "" {
		return nil
	}
	if now := time.Now(); until.After(now) {
		until = now
	}
	name := spooled{From: from, Until: until, PID: p.pid, Rate: rate, Name: p.name}.file(a.spool.suffix)
	if samples == 0 {
		remove(i.Profile)
	} else if err := os.Rename(i.Profile, filepath.Join(a.spool.dir, name)); err != nil {
		a.count.SpoolDropped.Add(1)
		return fmt.Errorf("the profile is lost: %w", err)
	}
	a.spool.trim()
	a.pusher.notify()
	return nil
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

// sleepUntil returns false if stop was closed before t.
func sleepUntil(t time.Time, stop <-chan struct{}) bool {
	return sleep(time.Until(t), stop) || !time.Now().Before(t)
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// sleep returns false if stop was closed meanwhile. If both happened, the result is either.
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
