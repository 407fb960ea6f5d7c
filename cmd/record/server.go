package record

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seedwalk/seedwalk/cmd/record/inflow"
	"github.com/seedwalk/seedwalk/cmd/record/listen"
	"github.com/seedwalk/seedwalk/cmd/record/options"
	"github.com/seedwalk/seedwalk/cmd/record/output"
	"github.com/seedwalk/seedwalk/internal/wholefile"
	"github.com/seedwalk/seedwalk/sample/probe"
	"github.com/seedwalk/seedwalk/sample/sampler"
)

// server receives the streams of all processes of one recording, and keeps their samples. Each connection
// comes from a profiler, or from an engine that samples the process of a probe. One goroutine accepts
// connections, and one reads each of them. mu guards the fields below it.
type server struct {
	path      string // for SEEDWALK_SOCKET
	listener  *listen.Listener
	folder    *listen.Folder
	keepProbe bool
	namer     options.Namer
	probes    bool // connections are from probes, and their processes are sampled from outside
	outside   sampler.Config
	instead   string        // library for processes that cannot be sampled from outside
	greeted   chan struct{} // gets a value when a probe's file has arrived
	failed    chan struct{} // gets a value when no engine can be made for it
	connected chan struct{} // closed at the first connection
	began     atomic.Int64  // when the first sample was taken, unix nanoseconds; 0 = there is none
	started   chan struct{} // gets a value when began is set, and when it becomes earlier
	timed     time.Duration // duration of the recording; 0: unlimited
	from      int64         // begin of a part of another recording, unix nanoseconds; 0: none
	relay     func()        // called when parts can be recorded; nil: this recording keeps its samples
	zeroPages uint64        // of wholefile, before this recording

	mu         sync.Mutex
	conns      []listen.Stream
	processes  []*inflow.Process
	refused    []string
	notes      []string
	recordings []*output.Recording
	asked      int    // the last process whose probe has asked, 0 = none
	fellBack   string // why the library was loaded instead of the probe, in the last such process
	fellNote   string // the note about that
	settling   bool
	limit      *time.Timer // calls begin; stopped when the recording ends, since it refers to its memory
	until      int64       // samples later than this are dropped, unix nanoseconds; 0: none
	readers    sync.WaitGroup
	accepting  chan struct{} // closed when the accepting goroutine has ended
}

// serve opens the socket and the recording files, and begins to accept connections. dir is the folder for
// the socket's private folder. The caller ends the recording with settle and then calls close.
func serve(dir string, opt *options.Options) (*server, error) {
	s, err := newServer(opt), error(nil)
	if opt.Part.Set() { // no process connects: it joins another recording
		s.from = opt.Part.From.UnixNano()
	} else if err = s.listen(dir, opt); err != nil {
		return nil, err
	}
	if s.recordings, err = output.OpenRecordings(opt.Outputs, opt.Stdout); err != nil {
		s.close()
		return nil, err
	}
	go s.accept()
	return s, nil
}

// listen opens the socket or port for profilers.
func (s *server) listen(dir string, opt *options.Options) (err error) {
	if s.listener, s.folder, err = listen.New(dir); err != nil {
		return err
	}
	s.path = s.listener.Where()
	err = opt.Unpack(s.folder)
	s.outside = opt.Engine() // on Windows, Unpack makes the memory that the engine shares
	if err == nil && opt.User != 0 {
		err = s.listener.Admit(opt.User, s.folder)
	}
	if err != nil {
		s.close()
	}
	return err
}

func newServer(opt *options.Options) *server {
	return &server{keepProbe: opt.KeepProbe, namer: opt.Namer, probes: opt.Mode == options.ModeProbe,
		instead: opt.Instead, outside: opt.Engine(), timed: opt.Duration, relay: opt.Relay,
		zeroPages: wholefile.ZeroPages(),
		greeted:   make(chan struct{}, 1), failed: make(chan struct{}, 1), connected: make(chan struct{}),
		started: make(chan struct{}, 1), accepting: make(chan struct{})}
}

func (s *server) accept() {
	defer close(s.accepting)
	for s.listener != nil {
		c, pid, err := s.listener.Next(s.refuse)
		if err != nil {
			return
		}
		if pid == os.Getpid() { // acceptWaiting
			c.Close()
			continue
		}
		if s.probes {
			if c, err = s.sampled(c, pid); err != nil {
				if err != errAnswered {
					s.refuse(err.Error())
					notify(s.failed)
				}
				continue
			}
		}
		s.add(c, pid)
	}
}

// acceptWaiting returns once the connections that wait now have been accepted.
func (s *server) acceptWaiting() {
	c, err := s.listener.Dial()
	if err != nil {
		return
	}
	go func() { <-s.accepting; c.Close() }()
	c.Read(make([]byte, 1)) // until accept closes it, or has ended
}

// note keeps a line for the user.
func (s *server) note(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.notes = append(s.notes, line)
}

// userNotes returns the lines for the user.
func (s *server) userNotes() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.notes...)
}

// cutNote returns a line about images that could not be read any more, "" if all could.
func (s *server) cutNote() string {
	n := wholefile.ZeroPages() - s.zeroPages
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("files that programs run were cut off or overwritten: %d of their pages could not be read, so stacks and names may be missing or wrong", n)
}

// fallback returns why a process was sampled by the library instead of the probe, "" if none was, and the
// note about it.
func (s *server) fallback() (why, note string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fellBack, s.fellNote
}

func (s *server) refuse(why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refused = append(s.refused, why)
}

// lastRefused returns why the last connection was refused, "" if none was.
func (s *server) lastRefused() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.refused) == 0 {
		return ""
	}
	return s.refused[len(s.refused)-1]
}

// lastAsked returns the process that loaded the probe last, or 0.
func (s *server) lastAsked() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked
}

// notify sends a value to the receiver of a channel with room for one value, if the room is free.
func notify(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// begin starts the recording's time at a moment, unless it has started earlier. Samples may arrive out of
// order, so a later call may be for an earlier moment.
func (s *server) begin(at time.Time) {
	for {
		prev := s.began.Load()
		if prev != 0 && prev <= at.UnixNano() {
			return
		}
		if s.began.CompareAndSwap(prev, at.UnixNano()) {
			break
		}
	}
	notify(s.started)
}

// beginLimit is the longest time that a connected process may be examined before the recording's time starts
// anyway.
const beginLimit = 30 * time.Second

// add adds a process, and starts to read its connection.
func (s *server) add(c listen.Stream, pid int) *inflow.Process {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.processes) == 0 {
		close(s.connected)
		s.limit = time.AfterFunc(beginLimit, func() { s.begin(time.Now()) })
	}
	p := inflow.New(pid, listen.ProcessName(pid))
	p.KeepSuspension, p.Keep, p.Begin = s.keepProbe, inflow.Keeper(s.namer, pid), s.begin
	_, engine := c.(engineStream)
	p.Prove = engine && !s.outside.NoWall
	if p.Until = s.until; p.Prove {
		p.Timed = s.timed
	}
	if engine && s.outside.Events&probe.WaitEvents != 0 {
		p.Pool = func() { p.WatchPool(pid, s.note) }
	}
	if _, joins := c.(joinedStream); joins {
		p.From = max(time.Now().UnixNano(), s.from)
	}
	if p.Relay = s.relay != nil; engine {
		p.Shared = inflow.Share(p)
	}
	if p.Relay {
		defer s.relay()
	}
	for _, f := range s.recordings {
		p.Files = append(p.Files, f.Add(p.Process))
	}
	s.processes = append(s.processes, p)
	s.conns = append(s.conns, c)
	if s.listener != nil {
		go resumeHeld(s.path, pid, s.note)
	}
	s.readers.Add(1)
	go func() {
		defer s.readers.Done()
		p.Read(c)
		p.EndSharing()
		close(p.Gone)
		s.begin(time.Now())
		c.Close()
		p.Watching.Wait()
	}()
	return p
}

// Times that settle waits. A process that has ended has left all its output in its socket's buffer, which is
// read at once; one that lives is asked to stop.
const (
	ownWait  = 10 * time.Second // of an engine in a tool of ours, which always ends
	partWait = time.Minute      // the same for the agent, where a long wait does no harm
)

var drainWait = 700 * time.Millisecond

// refusedToldWhy reports whether a profiler was loaded, did not work, and has reported the reason: then
// guesses would only hide it.
func (s *server) refusedToldWhy() bool {
	if s.folder == nil {
		return false
	}
	_, err := os.Lstat(s.folder.Path(listen.RefusedName))
	return err == nil
}

// endAt sets when the recording ends, unless it ends earlier. Samples taken later are dropped, even if the
// tool itself is late.
func (s *server) endAt(t time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at := t.UnixNano(); s.until == 0 || at < s.until {
		s.until = at
		for _, p := range s.processes {
			p.StopAt(at)
		}
	}
}

// settle ends the recording. It accepts waiting connections, asks the profilers to stop by closing our side,
// reads their remaining messages, and closes. For each connection it waits at most drainWait, ownWait, or
// partWait. What has arrived by then is kept. It may be called again.
func (s *server) settle() {
	s.endAt(time.Now())
	s.mu.Lock()
	again := s.settling
	s.settling = true
	s.mu.Unlock()
	if !again && s.listener != nil {
		s.acceptWaiting()
		s.listener.SetDeadline(time.Now())
	}
	<-s.accepting
	s.mu.Lock()
	conns := s.conns
	s.mu.Unlock()
	for _, c := range conns {
		c.CloseWrite()
		wait := drainWait
		switch c.(type) {
		case engineStream, joinedStream: // they send the rest and end
			wait = ownWait
		}
		if s.listener == nil {
			wait = partWait
		}
		c.SetReadDeadline(time.Now().Add(wait))
	}
	s.readers.Wait()
	s.mu.Lock()
	if s.limit != nil { // a process that waited to be accepted may have been the first
		s.limit.Stop()
	}
	s.mu.Unlock()
	s.stopListening()
}

// stopListening removes the socket. A process that starts later finds none and runs unrecorded; otherwise it
// would wait for an answer.
func (s *server) stopListening() {
	if s.listener != nil {
		s.listener.Close()
	}
}

// close removes the socket and its folder.
func (s *server) close() {
	s.stopListening()
	if s.folder != nil {
		s.folder.Close()
	}
}

// all returns the processes in the order they connected.
func (s *server) all() []*inflow.Process {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]*inflow.Process(nil), s.processes...)
}

// count returns the sums of the figures of all processes.
func (s *server) count() (p options.Progress) {
	all := s.all()
	p.Processes = len(all)
	for _, q := range all {
		q.Mu.RLock()
		c := q.Counts()
		p.Samples, p.Complete, p.Events, p.Threads = p.Samples+c.Samples, p.Complete+c.Complete,
			p.Events+c.Events, p.Threads+c.Threads
		q.Mu.RUnlock()
	}
	return p
}

// isSettling reports whether the recording is ending.
func (s *server) isSettling() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.settling
}

// errAnswered means that a connection was a question, and has been answered.
var errAnswered = errors.New("answered")
