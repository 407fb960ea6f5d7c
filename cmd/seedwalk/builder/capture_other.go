//go:build !(linux && amd64)

package builder

import (
	"fmt"
	"os"

	"github.com/seedwalk/seedwalk/cmd/record/options"
)

func (f *captureFlags) run() int {
	fmt.Fprintln(os.Stderr, "seedwalk capture: this command needs Linux on x86-64")
	return options.ExitRefused
}
