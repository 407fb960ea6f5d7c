//go:build (linux || windows) && amd64

package record

import (
	"net"

	"github.com/seedwalk/seedwalk/outside"
)

// engineStream is a connection whose other end is an engine of this process.
type engineStream struct {
	net.Conn
	engine *outside.Engine
}

func (s engineStream) CloseWrite() error {
	s.engine.Stop()
	return nil
}

// running starts an engine that writes to there, and returns its stream.
func running(e *outside.Engine, here, there net.Conn) stream {
	go func() {
		e.Run()
		there.Close()
	}()
	return engineStream{here, e}
}
