package continuous

import (
	"regexp"
	"slices"
)

// Rules choose processes. A process is a target if it is a .NET process and meets one of the
// PIDs, or every other rule that is set; All alone chooses every .NET process.
type Rules struct {
	PIDs    []int
	Command *regexp.Regexp // of the command line, with spaces between arguments
	Cgroup  *regexp.Regexp // of a line of /proc/PID/cgroup
	User    int            // id of the owner, -1 for anyone
	All     bool
}

// Set reports whether there is a rule at all.
func (r *Rules) Set() bool {
	return r.All || len(r.PIDs) > 0 || r.Command != nil || r.Cgroup != nil || r.User >= 0
}

// facts are the properties of a process that rules check.
type facts struct {
	pid, user       int
	command, cgroup string
}

func (r *Rules) match(f *facts) bool {
	if slices.Contains(r.PIDs, f.pid) {
		return true
	}
	if !r.All && r.Command == nil && r.Cgroup == nil && r.User < 0 {
		return false
	}
	return (r.Command == nil || r.Command.MatchString(f.command)) &&
		(r.Cgroup == nil || r.Cgroup.MatchString(f.cgroup)) &&
		(r.User < 0 || r.User == f.user)
}
