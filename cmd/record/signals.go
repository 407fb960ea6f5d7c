package record

import (
	"os"
	"os/signal"
)

// signals delivers what arrives.
type signals struct{ c chan os.Signal }

// catchSignals begins catching, except for signals we were started to ignore
// (nohup): those the command must go on ignoring, and a handler of ours would
// make them deadly for it.
func catchSignals() *signals {
	s := &signals{c: make(chan os.Signal, 64)}
	for _, sig := range forwarded {
		if !signal.Ignored(sig) {
			signal.Notify(s.c, sig)
		}
	}
	return s
}

func (s *signals) stop() { signal.Stop(s.c) }
