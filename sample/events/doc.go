// Package events handles the runtime's events that the probe has copied: it walks their stacks and sends them
// as waits, locks, allocations, and exceptions.
//
// Sources: the packages sample/probe and eventpipe/nettrace/clrevent.
//
// Glossary. The *delivery* is the frames on top of every event's stack through which the runtime delivers
// events.
//
// Strategy. The delivery is the common part of the stacks of two kinds of event; events wait until it is
// known. The stack of a long wait is read from outside.
//
// Known gaps: until two kinds of event have been seen, the frames of the delivery stay in the stacks.
package events
