package record

import (
	"fmt"
)

// empty reports in one line why a recording that profilers took part in has no samples and
// no events, "" if it has some.
func (r *run) empty() string {
	if c := r.srv.count(); c.Samples > 0 || c.Events > 0 {
		return ""
	}
	if r.noSamples() {
		return fmt.Sprintf("no events: none of what --events %s asked for happened while the process was recorded", r.opt.Events)
	}
	for _, p := range r.srv.all() {
		p.mu.RLock()
		line := p.WhyEmpty()
		p.mu.RUnlock()
		if line != "" {
			return "no samples: " + line
		}
	}
	return "no samples: the profiler connected and sent none; the command ended too soon, or none of its threads ran managed code"
}
