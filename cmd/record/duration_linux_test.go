package record

import (
	"net"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/report/wire"
	"github.com/seedwalk/seedwalk/sample/sampler"
	"github.com/seedwalk/seedwalk/testkit/tempdir"
)

// slowEngine is an engine that has sent everything, and whose target does not answer.
type slowEngine struct {
	to      net.Conn
	send    func(w *wire.Writer)
	release chan struct{}
}

func (e *slowEngine) Stop() {}

func (e *slowEngine) Run() string {
	w := wire.NewWriter(nil)
	e.send(w)
	e.to.Write(w.Bytes())
	<-e.release
	return sampler.HandlersLeft
}

// countedConn counts the reads of a connection.
type countedConn struct {
	net.Conn
	reads chan struct{}
}

func (c countedConn) Read(b []byte) (int, error) {
	c.reads <- struct{}{}
	return c.Conn.Read(b)
}

// The outputs do not wait until an engine has put its target back: nothing is read after
// the farewell. The user learns what could not be put back.
func TestSettleDoesNotWaitForTarget(t *testing.T) {
	s, err := listen(tempdir.New(t), &Options{Mode: ModeOutside, Rate: 99})
	if err != nil {
		t.Fatal(err)
	}
	defer s.private.close()
	here, there := net.Pipe()
	reads := make(chan struct{}, 8)
	e := &slowEngine{there, func(w *wire.Writer) { greet(w); samples(3)(w); w.Bye("the tool wants no more") }, make(chan struct{})}
	s.add(running(e, countedConn{here, reads}, there), 1)
	s.settle()
	if n := len(reads); n != 1 {
		t.Errorf("%d reads of a stream that came in one piece and said farewell", n)
	}
	if c := s.count(); c.Samples != 4 {
		t.Errorf("%+v", c)
	}
	close(e.release)
	var said []string
	s.awaitEngines(func(line string) { said = append(said, line) })
	if len(said) != 1 || said[0] != sampler.HandlersLeft {
		t.Errorf("said %q", said)
	}
}

// The time of a recording runs from the first sample, though that sample may have been held
// until its stack could be walked. What a thread did before is not of the recording.
func TestTimeRunsFromFirstSample(t *testing.T) {
	p := newProcess(1, "app")
	var began []time.Time
	p.prove, p.timed, p.begin = true, time.Hour, func(at time.Time) { began = append(began, at) }
	p.connected = time.Now().Add(-10 * time.Second)
	first := p.connected.Add(4 * time.Second)
	p.take(&wire.Hello{StartUnixNano: p.connected.UnixNano()})
	if len(began) != 0 {
		t.Fatal("the time runs before there is a sample")
	}
	for i := range 3 {
		at := first.Add(time.Duration(i) * time.Second)
		p.take(&wire.Sample{TID: 7, TimeUnixNano: at.UnixNano(), WallNanos: uint64(5 * time.Second)})
	}
	p.take(&wire.Sample{TID: 7, TimeUnixNano: time.Now().Add(time.Hour).UnixNano()}) // another clock
	if len(began) != 4 || !began[0].Equal(time.Unix(0, first.UnixNano())) || began[3].After(time.Now()) {
		t.Errorf("began %v, first sample %v", began, first)
	}
	b, _ := (&run{opt: &Options{}, srv: &server{processes: []*process{p}}}).build(nil)
	if got := time.Duration(b.Stacks[0].WallNanos); got != 3*time.Second {
		t.Errorf("the samples stand for %v, want 0s + 1s + 2s", got)
	}
	if b.Duration < 2*time.Second || !b.Start.Equal(time.Unix(0, first.UnixNano())) {
		t.Errorf("%v from %v, want 2s from %v", b.Duration, b.Start, first)
	}
}

// The end of a recording is a moment, not when the tool gets to it. Processes that come
// later end then too.
func TestEndIsAMoment(t *testing.T) {
	s, err := listen(tempdir.New(t), &Options{Mode: ModeOutside, Rate: 99})
	if err != nil {
		t.Fatal(err)
	}
	defer s.private.close()
	end, known := time.Now().Add(-time.Minute), make(chan struct{})
	late := func(w *wire.Writer) {
		<-known
		greet(w)
		for _, at := range []time.Time{end.Add(-time.Second), end, end.Add(time.Nanosecond), end.Add(time.Second)} {
			w.Sample(&wire.Sample{TID: 7, TimeUnixNano: at.UnixNano(), CPUNanos: 1})
		}
		w.Bye("the tool wants no more")
	}
	for i := range 2 {
		here, there := net.Pipe()
		e := &slowEngine{there, late, make(chan struct{})}
		close(e.release)
		if s.add(running(e, here, there), i+1); i == 0 {
			s.endAt(end)
		}
	}
	close(known)
	s.endAt(end.Add(time.Hour)) // no later than before
	s.settle()
	if c := s.count(); c.Samples != 4 || c.Processes != 2 {
		t.Errorf("%+v, want two samples of each process", c)
	}
}

// The first sample may come after later ones, if it was held: then the time runs from it.
func TestBeginsAtTheEarliestSample(t *testing.T) {
	s := &server{begun: make(chan struct{}, 1)}
	for _, c := range []struct {
		at, want int64
		news     bool
	}{{50, 50, true}, {60, 50, false}, {50, 50, false}, {40, 40, true}, {45, 40, false}} {
		s.begin(time.Unix(0, c.at))
		news := len(s.begun) == 1
		if news {
			<-s.begun
		}
		if got := s.began.Load(); got != c.want || news != c.news {
			t.Errorf("a sample at %d: began at %d, told %v", c.at, got, news)
		}
	}
}

// Held samples come all at once. Those after the end are dropped, though nobody has set it.
func TestHeldSamplesEndInTime(t *testing.T) {
	p := newProcess(1, "app")
	p.prove, p.timed = true, 2*time.Second
	first := time.Now().Add(-time.Minute)
	for i := range 5 {
		s := &wire.Sample{TID: 7, TimeUnixNano: first.Add(time.Duration(i) * time.Second).UnixNano(), CPUNanos: 1}
		if late := p.over(s); late != (i > 2) {
			t.Errorf("a sample after %d s of 2 s is late: %v", i, late)
		} else if !late {
			p.take(s)
		}
	}
	if p.Counts().Samples != 3 {
		t.Errorf("%d samples", p.Counts().Samples)
	}
}
