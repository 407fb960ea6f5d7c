package main

import (
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/cmd/seedwalk/cli"
)

func TestTopUsage(t *testing.T) {
	for _, args := range [][]string{{}, {"x"}, {"-5"}, {"1", "2"}, {"--interval", "1ms", "1"}, {"--duration", "-1s", "--json", "1"}, {"1"}} {
		if _, errOut, code, _ := tool(t, append([]string{"top"}, args...)...); code != cli.ExitUsage || !strings.Contains(errOut, "seedwalk top --help") {
			t.Errorf("%q: exit code %d, %s", args, code, errOut)
		}
	}
}
