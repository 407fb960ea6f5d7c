// Package top has the command that shows what a running process does now.
//
// Sources: console_codes(4).
//
// Glossary. A view is the difference between two sums.
//
// Strategy. A recording runs in the background. Each interval the profile so far is compared
// with the previous one.
//
// Known gaps: the counters of the runtime need its diagnostics port.
package top

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"strconv"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/seedwalk/seedwalk/cmd/record"
	"github.com/seedwalk/seedwalk/cmd/record/options"
	"github.com/seedwalk/seedwalk/cmd/seedwalk/cli"
	"github.com/seedwalk/seedwalk/internal/procstat"
	"github.com/seedwalk/seedwalk/report/export"
)

const Help = `Usage: seedwalk top [flags] PID

Shows what a running process does now: the functions and threads with most CPU time, what it
allocates, and the runtime's counters (collections, pauses, exceptions, contended locks, the queue of
the thread pool). It samples like seedwalk record --pid, and every row is of the last interval.

  --interval D       time between two views (default 1s)
  --duration D       end when the views cover D (sampling takes one interval more)
  --rate HZ          samples per second and thread (default 99)
  --no-alloc         leave out allocations by type, which need the runtime's events
  --json             print each view as one line of JSON instead

Keys: s sort by self time, t by total time, space pauses the view (the process runs on), q or Ctrl-C quits.

Examples:
  seedwalk top 4711
  seedwalk top --json --interval 5s --duration 1m 4711 > load.jsonl

Exit code: 0; 2 wrong usage; 125 the process cannot be sampled.
`

// topFlags are the flags of top.
type topFlags struct {
	opt      options.Options
	interval time.Duration
	json     bool
	noAlloc  bool
}

func Run(args []string) int {
	f := topFlags{interval: time.Second}
	set := flag.NewFlagSet("top", flag.ContinueOnError)
	set.Var((*cli.Seconds)(&f.interval), "interval", "")
	set.Var((*cli.Seconds)(&f.opt.Duration), "duration", "")
	set.Float64Var(&f.opt.Rate, "rate", options.DefaultRate, "")
	set.BoolVar(&f.json, "json", false, "")
	set.BoolVar(&f.noAlloc, "no-alloc", false, "")
	files, code, done := cli.ParseMixed(set, Help, args)
	if done {
		return code
	}
	if err := f.check(files); err != nil {
		return cli.Usage("top", err)
	}
	return f.run()
}

func (f *topFlags) check(args []string) (err error) {
	if len(args) == 1 {
		f.opt.PID, err = strconv.Atoi(args[0])
	}
	switch {
	case len(args) != 1 || err != nil || f.opt.PID <= 0:
		return errors.New("name one process by its PID")
	case f.interval < 100*time.Millisecond:
		return errors.New("--interval must be at least 100ms")
	case f.opt.Duration < 0:
		return errors.New("--duration cannot be negative")
	case !f.json && !term.IsTerminal(int(os.Stdout.Fd())):
		return errors.New("the standard output is not a terminal; add --json")
	}
	return nil
}

// liveView is the state of a running top.
type liveView struct {
	mu      sync.Mutex
	json    bool
	pid     int
	before  int64         // CPU time of the process before the recording, nanoseconds
	every   time.Duration // between two views
	last    totals        // at the end of the previous view, or at the first tick
	shown   *topView
	byTotal bool
	paused  bool
	stop    chan struct{}
	once    sync.Once
	load    *counters
}

func (f *topFlags) run() int {
	l := &liveView{json: f.json, pid: f.opt.PID, every: f.interval, stop: make(chan struct{}),
		load: watchCounters(f.opt.PID)}
	defer l.load.close()
	l.before, _ = procstat.CPUTime(l.pid)
	f.opt.Stop, f.opt.Live, f.opt.LiveEvery = l.stop, l.take, f.interval
	f.opt.Namer, f.opt.Probe, f.opt.Profiler = cli.NewNamer(nil, nil), cli.FindProbe(), cli.FindProfiler()
	f.opt.Stdin, f.opt.Stdout, f.opt.Stderr = os.Stdin, os.Stderr, os.Stderr
	if f.opt.Events = "cpu,wall,alloc"; f.noAlloc {
		f.opt.Events = options.EventsDefault
	}
	if f.opt.Duration > 0 {
		f.opt.Duration += f.interval // the first interval makes no view
	}
	var said []string
	f.opt.Say = func(line string) { said = append(said, line) }
	restore := func() {}
	if !f.json {
		restore = l.terminal()
	}
	res, err := record.Run(f.opt)
	if err == nil && l.json && res.Profile != nil {
		l.final(res.Profile)
	}
	l.mu.Lock() // nothing is drawn any more
	restore()
	for _, line := range said {
		fmt.Fprintf(os.Stderr, "seedwalk: %s\n", line)
	}
	var refusal *options.Refusal
	if errors.As(err, &refusal) {
		fmt.Fprintf(os.Stderr, "seedwalk: %s\n", refusal.Error())
		return refusal.Code
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "seedwalk: %v\n", err)
		return options.ExitRefused
	}
	return res.ExitCode
}

// terminal prepares the terminal. restore undoes that.
func (l *liveView) terminal() (restore func()) {
	in := int(os.Stdin.Fd())
	old, err := term.MakeRaw(in)
	if err == nil {
		go l.keys()
	}
	fmt.Fprint(cli.Stdout, "\x1b[?1049h\x1b[?25l\x1b[H\x1b[2Jseedwalk top: waiting for the first samples; q quits")
	return func() {
		fmt.Fprint(cli.Stdout, "\x1b[?25h\x1b[?1049l")
		if err == nil {
			term.Restore(in, old)
		}
	}
}

// end ends the recording.
func (l *liveView) end() { l.once.Do(func() { close(l.stop) }) }

// keys reads the keyboard. The recording ends if the terminal goes away.
func (l *liveView) keys() {
	const ctrlC = 3 // a raw terminal sends no SIGINT
	var key [1]byte
	for {
		if n, err := os.Stdin.Read(key[:]); n == 0 || err != nil {
			l.end()
			return
		}
		switch key[0] {
		case 'q', ctrlC:
			l.end()
			return
		case 's', 't':
			l.key(func() { l.byTotal = key[0] == 't' })
		case ' ':
			l.key(func() { l.paused = !l.paused })
		}
	}
}

// key changes the view and draws it again.
func (l *liveView) key(change func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change()
	l.draw()
}

// final makes a view of the rest of the recording, after the last tick. A rest shorter than half an interval
// is not shown. If nothing was shown yet, the view covers the whole recording.
func (l *liveView) final(p *export.Profile) {
	now := l.sum(p, p.Start.Add(p.Duration))
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case !l.last.at.IsZero() && now.at.Sub(l.last.at) >= l.every/2:
		l.show(p, l.last, now)
	case l.shown == nil:
		l.show(p, totals{at: p.Start, cpu: l.before}, now)
	}
}

// sum adds up a profile. The CPU time is that of the process's clock, from the process's start on: a
// recording reads the clock only once a second. A process that has ended has no clock.
func (l *liveView) sum(p *export.Profile, at time.Time) totals {
	t := sum(p, at)
	t.cpu += l.before
	if now, ok := procstat.CPUTime(l.pid); ok && l.pid > 0 {
		t.cpu = now
	}
	return t
}

// take makes a view of the time since the last one. The first tick only sets the baseline, because the
// recording begins before the process is sampled. A tick less than half an interval after the last one makes
// no view.
func (l *liveView) take(p *export.Profile) {
	now := l.sum(p, time.Now())
	l.mu.Lock()
	defer l.mu.Unlock()
	last := l.last
	if now.at.Sub(last.at) < l.every/2 {
		return // the previous tick was late
	}
	if l.last = now; !last.at.IsZero() {
		l.show(p, last, now)
	}
}

// show makes a view of an interval, and prints or draws it. The caller holds the lock.
func (l *liveView) show(p *export.Profile, last, now totals) {
	view := between(&last, &now)
	view.PID, view.Runtime, view.Counters = l.pid, p.Runtime, l.load.values()
	if l.json {
		l.shown = view
		line, err := json.Marshal(view)
		if err == nil {
			_, err = fmt.Fprintf(cli.Stdout, "%s\n", line)
		}
		if err != nil {
			l.end()
		}
		return
	}
	if !l.paused {
		l.shown = view
		l.draw()
	}
}

// draw writes the view. The caller holds the lock.
func (l *liveView) draw() {
	if l.shown == nil {
		return
	}
	width, height, err := term.GetSize(int(os.Stdout.Fd()))
	if err != nil {
		width, height = 80, 24
	}
	if _, err := cli.Stdout.WriteString(l.shown.screen(max(width, 1), max(height, 1),
		l.byTotal, l.paused)); err != nil {
		l.end()
	}
}
