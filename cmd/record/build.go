package record

import (
	"github.com/seedwalk/seedwalk/report/collect"
	"github.com/seedwalk/seedwalk/report/export"
)

// build makes the profile of what has arrived so far. A nil Namer names native
// frames module+0xoffset.
func (r *run) build(n Namer) (*export.Profile, *collect.Info) {
	all, empty := r.srv.all(), r.empty()
	var processes []*collect.Process
	for _, p := range all {
		p.mu.RLock()
		defer p.mu.RUnlock()
		processes = append(processes, p.Process)
	}
	info := r.info(processes, empty)
	return collect.Build(&info, processes, n), &info
}

// info describes the recording so far. The caller holds the locks of the processes.
func (r *run) info(processes []*collect.Process, empty string) collect.Info {
	want, _ := r.opt.Events.parse()
	info := collect.Info{Command: r.opt.Command, RateHz: r.opt.Rate, Start: r.start, AtFirst: r.timedFromFirst(), Empty: empty, Notes: r.srv.told()}
	for _, e := range runtimeEvents {
		if want.events&e.probe != 0 {
			info.Events = append(info.Events, e.events...)
		}
	}
	probed := false
	for _, p := range processes {
		probed = probed || p.Probed()
	}
	mode := r.opt.taken(r.srv.fell(), probed)
	info.Way, info.WayWhy = string(mode.Mode), mode.way()
	select {
	case <-r.exited:
		info.ExitNote = exitNote(r.code)
	default:
	}
	return info
}

// timedFromFirst reports whether --duration counts from the first sample.
func (r *run) timedFromFirst() bool {
	all := r.srv.all()
	return len(all) > 0 && all[0].timed != 0
}
