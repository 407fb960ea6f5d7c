package record

import (
	"net"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/cmd/record/options"
	"github.com/seedwalk/seedwalk/report/wire"
	"github.com/seedwalk/seedwalk/sample/sampler"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/tempdir"
)

// slowEngine is an engine that has sent everything, and whose target does not react.
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

// The outputs do not wait until an engine has restored its target: nothing is read after the farewell. The
// user is informed of what could not be restored.
func TestSettleDoesNotWaitForTarget(t *testing.T) {
	s := must.Get(serve(tempdir.New(t), &options.Options{Mode: options.ModeOutside, Rate: 99}))(t)
	defer s.folder.Close()
	here, there := net.Pipe()
	reads := make(chan struct{}, 8)
	e := &slowEngine{there, func(w *wire.Writer) { greet(w); samples(3)(w); w.Bye("the tool wants no more") },
		make(chan struct{})}
	s.add(running(e, countedConn{here, reads}, there), 1)
	s.settle()
	expect.Equal(t, len(reads), 1, "reads of a stream that came in one piece and said farewell")
	c := s.count()
	expect.True(t, c.Samples == 4, "%+v", c)
	close(e.release)
	var said []string
	s.awaitEngines(func(line string) { said = append(said, line) })
	expect.True(t, len(said) == 1 && said[0] == sampler.HandlersLeft, "said %q", said)
}

// A recording ends at a fixed moment, even if the tool is late. Processes that come later end then too.
func TestEndIsAMoment(t *testing.T) {
	s := must.Get(serve(tempdir.New(t), &options.Options{Mode: options.ModeOutside, Rate: 99}))(t)
	defer s.folder.Close()
	end, known := time.Now().Add(-time.Minute), make(chan struct{})
	late := func(w *wire.Writer) {
		<-known
		greet(w)
		for _, at := range []time.Time{end.Add(-time.Second), end,
			end.Add(time.Nanosecond), end.Add(time.Second)} {
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
	s.endAt(end.Add(time.Hour)) // not later than before
	s.settle()
	c := s.count()
	expect.True(t, c.Samples == 4 && c.Processes == 2, "%+v, want two samples of each process", c)
}

// The first sample may arrive after later ones: then the recording's time begins with it.
func TestBeginsAtTheEarliestSample(t *testing.T) {
	s := &server{started: make(chan struct{}, 1)}
	for _, c := range []struct {
		at, want int64
		news     bool
	}{{50, 50, true}, {60, 50, false}, {50, 50, false}, {40, 40, true}, {45, 40, false}} {
		s.begin(time.Unix(0, c.at))
		news := len(s.started) == 1
		if news {
			<-s.started
		}
		if got := s.began.Load(); got != c.want || news != c.news {
			t.Errorf("a sample at %d: began at %d, told %v", c.at, got, news)
		}
	}
}
