package engine

// Help is the command's help text.
const Help = `Usage: seedwalk engine --pid PID --millihertz N [--no-cpu] [--no-wall]

The client library of seedwalk (docs/embedding.md) starts this command beside a program.
It samples the program and sends the stacks through descriptor 3, on Windows
through its output. Do not start it yourself.
`
