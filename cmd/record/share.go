package record

import "github.com/seedwalk/seedwalk/report/wire"

// sharer gives the stream of one process to other recordings.
type sharer interface {
	pass(m wire.Message) // with the process's lock held
	end()
}

// passOn gives a message to the recordings that share the process.
func (p *process) passOn(m wire.Message) {
	if p.shared != nil {
		p.shared.pass(m)
	}
}

// endSharing tells those recordings that there are no more samples.
func (p *process) endSharing() {
	if p.shared != nil {
		p.shared.end()
	}
}

// isSettling reports whether the recording is ending.
func (s *server) isSettling() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.settling
}
