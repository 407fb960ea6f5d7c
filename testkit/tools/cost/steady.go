package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"
)

// window is the work of some seconds in a program that runs without an end.
type window struct {
	rate             int     // samples per second of the attached tool, 0 = none
	units, own, tool float64 // per second: units of work, processor time of the program and of seedwalk
}

// attachment is what one attachment costs outside its window.
type attachment struct {
	result
	start, end float64 // processor time of seedwalk before its window and after, seconds
	lost       float64 // seconds of the program's work that were not done meanwhile
	ready      float64 // seconds from the tool's start to its window
}

// The tool counts as settled after three consecutive intervals of settleLook in which it used less
// than idleShare of a core. It never counts as settled before settleLeast, because it may still wait
// for a processor. It always does after settleMost. The processor time before that point occurs once
// per recording.
const (
	settleLeast = 700 * time.Millisecond
	settleLook  = 100 * time.Millisecond
	settleMost  = 6 * time.Second
	idleShare   = 0.35
	between     = 100 * time.Millisecond // from a tool's end to the window after
)

// measureWindow measures the program's work during d. tool is the PID of seedwalk, or 0 if nothing
// is attached. It returns an error if the program did no work.
func (s *subject) measureWindow(d time.Duration, rate, tool int) (window, error) {
	a, own, used := s.units(), clock(s.pid()), clock(tool)
	begin := time.Now()
	time.Sleep(d)
	b, seconds := s.units(), time.Since(begin).Seconds()
	w := window{rate: rate, units: (b - a) / seconds, own: (clock(s.pid()) - own) / seconds}
	if tool != 0 {
		w.tool = (clock(tool) - used) / seconds
	}
	if b == a {
		return w, errors.New("the program does nothing")
	}
	return w, nil
}

// attach has the tool record the program, lets it settle, and measures a window.
func (o *options) attach(s *subject, rate int, alone float64) (w window, v attachment, err error) {
	cmd := exec.Command(filepath.Join(o.root, "out/bin/seedwalk"), "record", "--json", "--rate",
		fmt.Sprint(rate), "--pid", fmt.Sprint(s.pid()),
		"--output", filepath.Join(s.dir, "out.json"))
	var errs bytes.Buffer
	cmd.Stderr = &errs
	units, begin := s.units(), time.Now()
	if err := cmd.Start(); err != nil {
		return w, v, err
	}
	tool := cmd.Process.Pid
	settle(tool, begin)
	v.start, v.ready = clock(tool), time.Since(begin).Seconds()
	v.lost = v.ready - (s.units()-units)/alone
	w, err = s.measureWindow(o.window, rate, tool)
	used := clock(tool)
	v.memory = resident(fmt.Sprint(s.pid()))
	cmd.Process.Signal(os.Interrupt)
	units, begin = s.units(), time.Now()
	if waited := cmd.Wait(); waited != nil {
		return w, v, fmt.Errorf("seedwalk: %w\n%s", waited, errs.String())
	}
	v.lost += time.Since(begin).Seconds() - (s.units()-units)/alone
	v.end = (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds() - used
	v.summary(errs.Bytes(), setup{"probe", rate})
	time.Sleep(between)
	return w, v, err
}

// settle waits until a tool has settled.
func settle(tool int, begin time.Time) {
	quiet, last := 0, clock(tool)
	for time.Since(begin) < settleLeast || quiet < 3 && time.Since(begin) < settleMost {
		at := time.Now()
		time.Sleep(settleLook)
		now := clock(tool)
		if quiet++; (now-last)/time.Since(at).Seconds() > idleShare {
			quiet = 0
		}
		last = now
	}
}

// steady is a series of windows. Each window with the tool is between two windows without it.
type steady struct {
	windows     []window
	attachments map[int][]attachment
}

// steadily measures a program at every rate until its time is over. Each turn has the rates in
// another order, and its own windows without the tool. So no two differences of one rate share a
// window.
func (o *options) steadily(p program) (*steady, error) {
	s, err := o.start(p)
	if err != nil {
		return nil, err
	}
	defer s.close()
	time.Sleep(warmUp)
	m := &steady{attachments: map[int][]attachment{}}
	begin, told := time.Now(), time.Now()
	for turn := 0; time.Since(begin) < o.each; turn++ {
		if err := o.turn(s, m, turn); err != nil {
			return nil, fmt.Errorf("%s: %w", p.name, err)
		}
		if time.Since(told) > progressEvery {
			told = time.Now()
			fmt.Fprintf(os.Stderr, "%s: %d windows at each rate, %v of %v\n", p.name, turn+1,
				time.Since(begin).Round(time.Second), o.each)
		}
	}
	return m, nil
}

// turn measures one window of each rate, each between two windows without the tool.
func (o *options) turn(s *subject, m *steady, n int) error {
	alone, err := s.measureWindow(o.window, 0, 0)
	if err != nil {
		return err
	}
	m.windows = append(m.windows, alone)
	for k := range rates {
		rate := rates[(k+n)%len(rates)]
		w, v, err := o.attach(s, rate, alone.units)
		if err != nil {
			return fmt.Errorf("%d Hz: %w", rate, err)
		}
		if alone, err = s.measureWindow(o.window, 0, 0); err != nil {
			return err
		}
		m.windows = append(m.windows, w, alone)
		m.attachments[rate] = append(m.attachments[rate], v)
	}
	return nil
}

const (
	warmUp        = 3 * time.Second // methods are compiled at first use, and again when they are hot
	progressEvery = 20 * time.Second
)

// differences returns the difference of each window at a rate from the two windows beside it. For
// rate 0, it uses each turn's middle window without the tool, and the turn's other two.
func differences(all []window, rate int, f func(with, before, after *window) float64) (d []float64) {
	step := 1
	if rate == 0 {
		all, step = slices.DeleteFunc(slices.Clone(all), func(w window) bool { return w.rate != 0 }),
			len(rates)+1
	}
	for i := 1; i+1 < len(all); i += step {
		if w := &all[i]; w.rate == rate && all[i-1].rate == 0 && all[i+1].rate == 0 {
			d = append(d, f(w, &all[i-1], &all[i+1]))
		}
	}
	return d
}

// throughput returns the lost share of the units.
func throughput(w, a, b *window) float64 { return 100 * (1 - 2*w.units/(a.units+b.units)) }

// effort returns the share by which the program's processor time per unit increases.
func effort(w, a, b *window) float64 {
	return 100 * (w.own/w.units*(a.units+b.units)/(a.own+b.own) - 1)
}
