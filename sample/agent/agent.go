package agent

import (
	"time"

	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/clr/managed"
	"github.com/seedwalk/seedwalk/internal/quiet"
	"github.com/seedwalk/seedwalk/report/wire"
	"github.com/seedwalk/seedwalk/sample/stream"
	"github.com/seedwalk/seedwalk/stack/merge"
	"github.com/seedwalk/seedwalk/stack/snapshot"
	"github.com/seedwalk/seedwalk/unwind"
	"github.com/seedwalk/seedwalk/unwind/module"
)

// Config is the configuration that the tool sends to the profiler.
type Config struct {
	RateHz float64     // rounds per second, > 0
	Slots  int         // maximum threads per round
	Raw    string      // file for raw samples, "" for none
	Ended  func() bool // reports whether the tool has stopped listening; may be nil
}

// maxFrames bounds a merged stack.
const maxFrames = 16384

// tableRefresh is the shortest time between two reads of the process's mappings because
// of changed code.
const tableRefresh = 200 * time.Millisecond

// Agent is the sampler of one process.
type Agent struct {
	host   Process
	take   strategy
	cfg    Config
	send   func([]byte) error
	walker unwind.Walker
	merger *merge.Merger
	tables tables
	names  names
	stats  stats
	stream stream.Stream

	threads []Thread
	chosen  []clr.Thread
	clocks  map[uint64]clock
	turn    int
	listed  int64 // when the threads were last listed, 0: never
	primed  bool
	refused string // reason why sampling must end, "" if it need not
	frames  []merge.Frame

	use  func(*Stack) // Once: receives the stacks instead of the stream; nil in Run
	only clr.ThreadID // Once: the requested thread, 0 for all

	copied   *clr.Capture // Copied: the capture that is being walked
	unproven int          // calls of Copied without verified tables
}

// clock is the state of a kernel thread between samples.
type clock struct {
	name string
	cpu  uint64
	at   int64
	cpuD uint64 // since the last sample, in the current round
	read bool   // cpu is valid
}

// strategy is how the threads of a round are stopped and sampled.
type strategy interface {
	// prime prepares the CLR while nothing is suspended. It is called before
	// every round until it succeeds.
	prime(threads []clr.Thread) bool
	// round samples the threads and passes each capture to a.sample. It returns
	// the reason to stop sampling, "" to continue.
	round(a *Agent, threads []clr.Thread) string
	// tables sets a new module table. merging announces a capture that will be
	// merged. Both are called while nothing is suspended.
	tables(a *Agent, t *module.Table)
	merging(a *Agent, c *clr.Capture)
	// write appends the strategy's own figures.
	write(w *wire.Writer)
}

// New returns an agent that suspends the whole runtime and sends its stream through send.
func New(host Host, cfg Config, send func([]byte) error) *Agent {
	a := newAgent(host, cfg, send)
	r := &rounds{host: host, sampler: snapshot.New(host, cfg.Slots), managed: newContracts(a, host)}
	a.take, a.names.contracts = r, &r.managed.Contracts
	return a
}

// NewThreads returns an agent that suspends one thread at a time.
func NewThreads(host ThreadHost, cfg Config, send func([]byte) error) *Agent {
	a := newAgent(host, cfg, send)
	seeder := snapshot.NewSeeder(a.walker, nil)
	s := &single{host: host, seeder: seeder, sampler: snapshot.NewThreads(host, seeder),
		tries: tries{}, garbage: quiet.New(), methods: host.Managed()}
	if a.take = s; s.methods != nil {
		a.merger.SetManaged(s.methods)
		seeder.SetMethods(s.methods)
		s.sampler.Between = seeder.Learn
	}
	return a
}

func newAgent(host Process, cfg Config, send func([]byte) error) *Agent {
	a := &Agent{
		host: host, cfg: cfg, send: send,
		walker: managed.NewWalker(host.Arch()),
		clocks: map[uint64]clock{},
		copied: new(clr.Capture),
		frames: make([]merge.Frame, maxFrames),
	}
	a.names.init(host)
	a.stream = stream.New(1<<20, &a.names)
	a.tables.init(host.Table)
	a.merger = merge.New(a.walker, &a.names)
	return a
}

// Run samples until the host stops or the tool disconnects. It returns the reason.
func (a *Agent) Run() string {
	if err := a.open(); err != nil {
		return err.Error()
	}
	defer a.stream.Raw.Close()
	period := time.Duration(float64(time.Second) / a.cfg.RateHz)
	next := time.Now()
	for !a.host.Stopping() {
		if a.ended() {
			return a.end("the tool wants no more")
		}
		if err := a.round(); err != nil {
			return "the tool is gone: " + err.Error()
		}
		if a.refused != "" {
			return a.end(a.refused)
		}
		next = next.Add(period)
		if now := time.Now(); next.Before(now) {
			next = now // a round took longer than a period: do not catch up
		}
		a.rest(time.Until(next))
	}
	return a.end("the process ended")
}

// end sends the last figures and the reason for the end.
func (a *Agent) end(reason string) string {
	a.stats.write(a.stream.Out)
	a.take.write(a.stream.Out)
	a.stream.Out.Bye(reason)
	a.send(a.stream.Out.Bytes())
	return reason
}

func (a *Agent) ended() bool { return a.cfg.Ended != nil && a.cfg.Ended() }

// rest sleeps in short pieces, so that it notices a stop soon.
func (a *Agent) rest(d time.Duration) {
	for d > 0 && !a.host.Stopping() && !a.ended() {
		step := min(d, 20*time.Millisecond)
		time.Sleep(step)
		d -= step
	}
}

func (a *Agent) open() error {
	a.openRaw()
	a.stream.Begin(&wire.Hello{PID: a.host.PID(), Arch: a.host.Arch().GOARCH(), Runtime: a.host.Version(),
		StartUnixNano: time.Now().UnixNano(), RateMilliHz: uint64(a.cfg.RateHz * 1000)})
	return a.flush()
}

// openRaw creates the file of raw samples once, if one is configured.
func (a *Agent) openRaw() {
	a.stream.OpenRaw(a.cfg.Raw)
	a.cfg.Raw = ""
}

func (a *Agent) flush() error {
	return a.stream.Flush(a.send)
}

// round samples every chosen thread once.
func (a *Agent) round() error {
	a.events()
	a.tables.refresh(a, false)
	if !a.choose() {
		return nil
	}
	a.pin()
	a.refused = a.take.round(a, a.chosen)
	a.host.Unpin()
	if a.stats.due() {
		a.stats.write(a.stream.Out)
		a.take.write(a.stream.Out)
	}
	return a.flush()
}

// pin holds up unloads of modules until Unpin. A module may have been unloaded since the round began, so
// events are read again.
func (a *Agent) pin() {
	a.host.Pin()
	a.events()
}

// events drains the events that application threads reported.
func (a *Agent) events() {
	for {
		kind, ok := a.host.Event()
		if !ok {
			return
		}
		switch kind {
		case EventModuleUnload, EventLost:
			a.names.forget()
			a.tables.dirty = true
		default:
			a.tables.dirty = true
		}
	}
}

// choose picks the threads of this round: all of them, or as many as there are slots, in
// turn. It reads their clocks while nothing is suspended.
func (a *Agent) choose() bool {
	a.threads = a.host.Threads(a.threads[:0])
	a.wanted()
	now, n := a.host.Now(), len(a.threads)
	if n == 0 {
		return false
	}
	a.chosen = a.chosen[:0]
	for i := range n {
		t := &a.threads[(a.turn+i)%n]
		if i < a.cfg.Slots {
			a.chosen = append(a.chosen, t.Thread)
			a.tick(t, now)
		} else if !a.clocks[t.TID].read {
			a.tick(t, now)
			c := a.clocks[t.TID]
			c.cpu -= c.cpuD // for its first sample
			a.clocks[t.TID] = c
		}
	}
	a.turn = (a.turn + len(a.chosen)) % n
	if a.only == 0 {
		a.listed = now
		a.expire()
	}
	a.primed = a.primed || a.take.prime(a.chosen)
	return a.primed
}

// tick records a thread's name and CPU time. A new thread has used at most the time since the threads were
// last listed. A thread whose clock went back is also new: it has the number of a thread that ended.
func (a *Agent) tick(t *Thread, now int64) {
	c := a.known(t)
	cpu := a.host.ThreadCPU(t.TID)
	if !c.read || cpu < c.cpu {
		c.cpu = cpu
		if a.listed != 0 {
			c.cpu -= min(cpu, uint64(now-a.listed))
		}
	}
	c.cpuD = cpu - c.cpu
	c.cpu, c.read = cpu, true
	a.clocks[t.TID] = c
}

// known returns the state of a thread, with its current name.
func (a *Agent) known(t *Thread) clock {
	c := a.clocks[t.TID]
	name := t.Name
	if name == "" {
		name = c.name
	}
	if name == "" {
		name = a.host.ThreadName(t.TID)
	}
	if name != c.name || c.at == 0 {
		a.stream.Out.Thread(&wire.Thread{TID: t.TID, Name: name})
	}
	c.name = name
	return c
}

// expire removes ended threads from time to time.
func (a *Agent) expire() {
	if len(a.clocks) < 2*len(a.threads)+64 {
		return
	}
	alive := make(map[uint64]clock, len(a.threads))
	for i := range a.threads {
		if c, ok := a.clocks[a.threads[i].TID]; ok {
			alive[a.threads[i].TID] = c
		}
	}
	a.clocks = alive
}

// sample merges one capture and appends it to the stream. If the walk meets code that the
// module table lacks, sample reads the mappings again and retries once: code heaps grow at
// any time. If modules changed since the capture, the stack cannot be walked and is dropped.
func (a *Agent) sample(c *clr.Capture) {
	if c.Status == clr.CaptureGone {
		a.stats.gone++
		return
	}
	a.take.merging(a, c)
	res := a.merger.Merge(c, a.frames)
	if res.Gap == merge.GapNoInfo && a.tables.refresh(a, true) {
		if !a.tables.holds(c) {
			a.stats.outdated++
			return
		}
		res = a.merger.Merge(c, a.frames)
	}
	if a.use != nil {
		a.hand(c, &res)
		return
	}
	now := time.Now().UnixNano()
	k := a.clocks[c.Thread.TID]
	wall := int64(float64(time.Second) / a.cfg.RateHz)
	if k.at != 0 {
		wall = min(now-k.at, 50*wall)
	}
	k.at = now
	a.clocks[c.Thread.TID] = k
	frames := a.stream.Encode(a.frames[:res.N], res.Probe)
	a.names.resolve(&a.stream) // the lines of a sample precede it
	a.stream.Out.Sample(&wire.Sample{TID: c.Thread.TID, TimeUnixNano: now,
		WallNanos: uint64(wall), CPUNanos: k.cpuD,
		Verdict: uint32(res.Verdict), HRESULT: uint32(c.Result), Gap: uint8(res.Gap), Frames: frames})
	a.stream.Raw.Sample(c, &res, a.frames[:res.N])
	if a.stream.Out.Len() > 1<<19 {
		a.flush()
	}
}
