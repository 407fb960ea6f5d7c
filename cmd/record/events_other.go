//go:build !(windows && amd64)

package record

// noEvents reports why the runtime's events cannot be had, "" if they can.
func (o *Options) noEvents() string {
	if needsLibrary {
		return ""
	}
	return "nothing of seedwalk is in the process, where the runtime's events are delivered"
}

func (o *Options) share() error { return nil }
