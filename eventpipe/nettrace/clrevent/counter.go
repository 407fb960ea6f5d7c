package clrevent

import "math"

// Counters is the provider of the runtime's counters, and CounterEvent the name of its event.
const (
	Counters     = "System.Runtime"
	CounterEvent = "EventCounters"
)

// Counter is the value of a counter for one interval.
type Counter struct {
	Name  string
	Value float64 // the mean, or the increment of the interval
}

// DecodeCounter reads an event of a counter (dotnet/runtime
// src/libraries/System.Private.CoreLib/src/System/Diagnostics/Tracing/CounterPayload.cs).
func DecodeCounter(payload []byte) (c Counter, ok bool) {
	mean := read(payload, 8)
	c.Name = mean.text()
	mean.text() // the name for people
	sum := mean
	c.Value = math.Float64frombits(mean.U64())
	mean.Skip(8 + 4 + 8 + 8 + 4) // deviation, count, least, most, interval
	mean.text()
	if mean.text() != "Mean" || !mean.OK() {
		sum.text() // unit of the rate
		c.Value = math.Float64frombits(sum.U64())
		sum.Skip(4) // interval
		sum.text()
		sum.text()
		if sum.text() != "Sum" || !sum.OK() {
			return c, false
		}
	}
	return c, !math.IsNaN(c.Value) && !math.IsInf(c.Value, 0)
}
