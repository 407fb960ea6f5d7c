package outside

import (
	"time"

	"github.com/seedwalk/seedwalk/sample/events"
	"github.com/seedwalk/seedwalk/sample/perfevent"
	"github.com/seedwalk/seedwalk/sample/sampler"
)

// watchBirths starts to watch for the descendants of the known threads.
func (e *Engine) watchBirths() {
	if e.births.IsOpen() || e.stretches.On || e.unwatched || e.Config.NoCPU ||
		e.cpuClock != sampler.ClockPerf {
		return
	}
	var rings []int
	if e.kernelTime.Wake && e.kernelTime.Rings != nil {
		rings = e.kernelTime.Rings.Rings()
	}
	e.births.Open(rings...)
}

// endWatch ends the watch after its last samples.
func (e *Engine) endWatch(now time.Time) {
	e.readNewborns(e.Nano(now))
	e.births.End()
}

// readNewborns takes the samples of new threads.
func (e *Engine) readNewborns(now int64) {
	e.births.Read(now, func(r *perfevent.Record) { e.copied(r, e.births.SinceBoot, e.Period) })
}

// sleepWatching is sleep while threads are reported as they are created.
func (e *Engine) sleepWatching(d time.Duration) {
	for end := time.Now().Add(d); d > 0 && !e.Stopped.Load(); d = time.Until(end) {
		if e.Config.Events != 0 || e.Config.Client {
			d = min(d, events.EventStep)
		}
		e.births.Await(d)
		e.readKernel()
		now := e.Nano(time.Now())
		e.births.Update(now)
		e.readNewborns(now)
		if (e.Config.Events != 0 || e.Config.Client) && e.file.Taken() > 0 {
			e.readRing()
		}
	}
}
