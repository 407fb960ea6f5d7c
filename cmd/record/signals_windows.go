package record

import (
	"os"
	"syscall"
)

// forwarded are the signals that are caught. A console sends Ctrl-C to all its
// processes, the command included; the others end it with us.
var forwarded = []os.Signal{os.Interrupt, syscall.SIGTERM}

// forward has nothing to do: whoever sent the signal has sent it to the command.
func (r *run) forward(os.Signal) {}
