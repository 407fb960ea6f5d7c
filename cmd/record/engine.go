package record

import (
	"net"
	"time"

	"github.com/seedwalk/seedwalk/cmd/record/listen"
	"github.com/seedwalk/seedwalk/sample/sampler"
)

// engine samples one process from outside.
type engine interface {
	Run() string
	Stop()
}

// engineStream is a connection whose other end is an engine of this process.
type engineStream struct {
	net.Conn
	engine engine
	ended  chan string // gets the reason why the engine ended, once the target is restored
}

func (s engineStream) CloseWrite() error {
	s.engine.Stop()
	return nil
}

// joinedStream is the stream of another recording's samples.
type joinedStream struct{ *net.UnixConn }

// running starts an engine that writes to there, and returns its stream.
func running(e engine, here, there net.Conn) listen.Stream {
	ended := make(chan string, 1)
	go func() {
		why := e.Run()
		there.Close()
		ended <- why
	}()
	return engineStream{here, e, ended}
}

// leaveLimit is the time that the engines have to restore their targets on a busy machine.
const leaveLimit = 15 * time.Second

// awaitEngines waits for every engine to restore its target, at most leaveLimit for all. It reports if
// one could not.
func (s *server) awaitEngines(say func(string)) {
	s.mu.Lock()
	conns := s.conns
	s.mu.Unlock()
	limit := time.After(leaveLimit)
	for _, c := range conns {
		if e, ok := c.(engineStream); ok {
			e.engine.Stop()
			select {
			case why := <-e.ended:
				if why == sampler.HandlersLeft {
					say(why)
				}
			case <-limit:
				return
			}
		}
	}
}
