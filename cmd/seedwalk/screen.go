package main

import (
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/seedwalk/seedwalk/cmd/record/options"
)

// screen prints a progress line on a terminal, and lines for the user above
// it. Without a terminal there is no progress line.
type screen struct {
	w     *os.File
	live  bool
	mu    sync.Mutex
	shown bool
}

func newScreen(w *os.File, quiet bool) *screen {
	return &screen{w: w, live: !quiet && term.IsTerminal(int(w.Fd()))}
}

func (s *screen) say(line string) {
	s.clear()
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprintf(s.w, "seedwalk: %s\n", line)
}

// clear removes the progress line.
func (s *screen) clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.shown {
		fmt.Fprint(s.w, "\r\x1b[K")
		s.shown = false
	}
}

func (s *screen) progress(p options.Progress) {
	width, _, err := term.GetSize(int(s.w.Fd()))
	if err != nil || width < 20 {
		width = 80
	}
	line := progressLine(p)
	if len(line) >= width {
		line = line[:width-1]
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprintf(s.w, "\r%s\x1b[K", line)
	s.shown = true
}

// progressLine is ASCII, so that its length is its width.
func progressLine(p options.Progress) string {
	if p.Processes == 0 {
		return "seedwalk: " + p.Stage
	}
	complete := 100.0
	if p.Samples > 0 {
		complete = 100 * float64(p.Complete) / float64(p.Samples)
	}
	line := fmt.Sprintf("seedwalk: %s %s  %d samples  %.1f %% complete  %d threads", p.Stage,
		p.Elapsed.Round(time.Second), p.Samples, complete, p.Threads)
	if p.Processes > 1 {
		line += fmt.Sprintf("  %d processes", p.Processes)
	}
	return line
}
