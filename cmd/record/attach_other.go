//go:build !linux && !(windows && amd64)

package record

import "errors"

func (o *Options) attachable() *Refusal {
	return &Refusal{What: "running processes are recorded on Linux, and on Windows on x86-64", Where: "--pid", Remedy: "start it with seedwalk record -- COMMAND", Code: ExitRefused}
}

func (r *run) attach() error { return errors.New("not on this system") }
