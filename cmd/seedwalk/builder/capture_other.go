//go:build !(linux && amd64)

package builder

import (
	"github.com/seedwalk/seedwalk/cmd/record/options"
	"github.com/seedwalk/seedwalk/cmd/seedwalk/cli"
)

func (f *captureFlags) run() int {
	return cli.Fail("capture", options.ExitRefused, "this command needs Linux on x86-64")
}
