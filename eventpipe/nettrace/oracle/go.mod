// A module of its own: what only this comparison needs is no dependency of the
// project.
module github.com/seedwalk/seedwalk/eventpipe/nettrace/oracle

go 1.26.0

require (
	github.com/pyroscope-io/dotnetdiag v1.2.1
	github.com/seedwalk/seedwalk v0.0.0
)

replace github.com/seedwalk/seedwalk => ../../..
