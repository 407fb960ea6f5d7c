package doctor

// pidChecks are those of a running process.
var pidChecks = []func(*patient) Finding{func(*patient) Finding {
	return Finding{"process", Bad, "running processes are recorded on Linux, and on Windows x86-64",
		"read a core of it: seedwalk stack --core FILE"}
}}
