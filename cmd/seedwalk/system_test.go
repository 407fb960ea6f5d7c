package main

import (
	"strings"
	"testing"
)

// What doctor says of a Windows, on any host.
func TestJudgeWindows(t *testing.T) {
	for _, c := range []struct {
		name                string
		major, minor, build int
		goarch, native      string
		wine                string
		status              status
		want                string
	}{
		{"Windows 11", 10, 0, 22631, "amd64", "amd64", "", good, "Windows 10.0.22631, amd64"},
		{"Server 2016", 10, 0, 14393, "amd64", "", "", good, "no special rights"},
		{"Windows 7", 6, 1, 7601, "amd64", "amd64", "", bad, "needs Windows 10 or Windows Server 2016"},
		{"Windows 8.1", 6, 3, 9600, "amd64", "", "", bad, "needs Windows 10"},
		{"Wine", 6, 1, 7601, "amd64", "amd64", "8.0", good, "Wine 8.0, which calls itself Windows 6.1.7601"},
		{"x64 emulated on ARM64", 10, 0, 22631, "amd64", "arm64", "", bad, "emulates x86-64 on an ARM64 machine"},
		{"ARM64", 10, 0, 22631, "arm64", "arm64", "", bad, "arm64"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := judgeWindows(c.major, c.minor, c.build, c.goarch, c.native, c.wine)
			if f.Status != c.status || !strings.Contains(f.Detail, c.want) || (f.Status == bad) != (f.Remedy != "") {
				t.Errorf("%+v", f)
			}
		})
	}
}
