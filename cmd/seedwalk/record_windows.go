package main

import "strings"

// platformHelp replaces what is different on Windows in a help text.
func platformHelp(s string) string { return windowsWords.Replace(s) }

var windowsWords = strings.NewReplacer(
	"output, signals, and the exit code", "output, Ctrl-C, and the exit code",
	"128+n signal n ended it", "130 a second Ctrl-C",
	"./MyService", "MyService.exe",
	"2>/dev/null | sort -k2", "2>nul | sort",
	"../lib, or", `..\lib, or`,
)
