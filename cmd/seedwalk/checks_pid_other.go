//go:build !linux && !(windows && amd64)

package main

// pidChecks are those of a running process.
var pidChecks = []func(*patient) finding{func(*patient) finding {
	return finding{"process", bad, "running processes are looked at on Linux, and on Windows on x86-64", "look at a core of it: seedwalk stack --core FILE"}
}}
