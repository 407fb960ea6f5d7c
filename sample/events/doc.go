// Package events takes the runtime's events that the probe has copied, walks their stacks, and
// sends them: waits, locks, allocations, and exceptions.
//
// Sources: the packages sample/probe and eventpipe/nettrace/clrevent.
//
// Glossary. The *delivery* is the frames on top of every event's stack by which the runtime
// delivers events.
//
// Strategy. The delivery is what stacks of two kinds of event have in common; events wait until
// it is known. The stack of a wait that lasts is read from outside.
//
// Known gaps: until two kinds of event were seen, the delivery's frames stay.
package events
