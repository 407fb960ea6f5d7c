package tasks

import (
	"strings"

	"github.com/seedwalk/seedwalk/clr/naming"
	"github.com/seedwalk/seedwalk/clr/objects"
)

// kind is the role of a type's objects in chains.
type kind uint8

const (
	other       kind = iota
	task             // any other Task
	box              // of an async method
	combined         // a promise completed by tasks: WhenAll, ContinueWith
	oneWay           // a promise completed by tasks to which it does not refer: Task.Run, WhenAll of Task
	blocked          // an object on which a thread blocks
	tokenSource      // of a CancellationToken
	action           // a delegate
	wrapper          // an object whose continuation is in a field
	list             // of continuations
)

// shape describes a type's objects in chains.
type shape struct {
	kind  kind
	name  string
	flags uint64 // offset of m_stateFlags, 0 if the type is not a Task
	timer uint64 // offset of the timer that ends a promise, 0 = none
	next  uint64 // offset of the continuation: m_continuationObject, or the field in known; 0 = none
	state uint64 // offset of a box's state machine; objectHeader if awaiters are the object's own fields
	// lookForOce is the offset of UnwrapPromise._lookForOce: true for Task.Run, false for Unwrap; 0 = none.
	lookForOce uint64
	class      bool // the state machine is a class; the box holds its address
	// awaiters are the fields that hold awaiters: of a state machine, or of a ValueTask's task.
	awaiters []objects.Span
	valid    bool // the fields that the kind needs exist
}

const (
	threading = "System.Threading.Tasks."
	valueTask = threading + "ValueTask"
	taskRun   = "Task.Run" // also of Unwrap, see pending.name
)

// known maps types to roles. A derived type has the role of its first match.
var known = []struct {
	typ   string
	kind  kind
	field string // of a box: the state machine; of a task: its source; of others: what follows
	shown string // name in chains, "" = the method of a box, else the type's name
}{
	{"System.Runtime.CompilerServices.AsyncTaskMethodBuilder`1+AsyncStateMachineBox`1", box,
		"StateMachine", ""},
	{"System.Runtime.CompilerServices.PoolingAsyncValueTaskMethodBuilder`1+StateMachineBox`1", box,
		"StateMachine", ""},
	{threading + "Task+SetOnInvokeMres", blocked, "", ""},
	{threading + "Task+SetOnCountdownMres", blocked, "", ""},
	{valueTask + "+ValueTaskSourceAsTask", task, "_source", "ValueTask.AsTask"},
	{valueTask + "`1+ValueTaskSourceAsTask", task, "_source", "ValueTask.AsTask"},
	{threading + "Task+DelayPromise", task, "", "Task.Delay"},
	{"System.Threading.SemaphoreSlim+TaskNode", task, "", "SemaphoreSlim.WaitAsync"},
	{threading + "Task+WhenAllPromise", oneWay, "", "Task.WhenAll"},
	{threading + "Task+WhenAllPromise`1", combined, "", "Task.WhenAll"},
	{threading + "Task+TwoTaskWhenAnyPromise`1", combined, "", "Task.WhenAny"},
	{threading + "TaskFactory+CompleteOnInvokePromise", combined, "", "Task.WhenAny"},
	{threading + "TaskFactory+CompleteOnInvokePromise`1", combined, "", "Task.WhenAny"},
	{threading + "UnwrapPromise`1", oneWay, "", taskRun},
	{threading + "Task+CancellationPromise`1", combined, "", "Task.WaitAsync"},
	{threading + "ContinuationTaskFromTask", combined, "", "Task.ContinueWith"},
	{threading + "ContinuationTaskFromResultTask`1", combined, "", "Task.ContinueWith"},
	{threading + "ContinuationResultTaskFromTask`1", combined, "", "Task.ContinueWith"},
	{threading + "ContinuationResultTaskFromResultTask`2", combined, "", "Task.ContinueWith"},
	{threading + "Task", task, "", ""},
	{threading + "ContinueWithTaskContinuation", wrapper, "m_task", ""},
	{threading + "StandardTaskContinuation", wrapper, "m_task", ""},
	{threading + "AwaitTaskContinuation", wrapper, "m_action", ""},
	{"System.Runtime.CompilerServices.AsyncMethodBuilderCore+ContinuationWrapper",
		wrapper, "_continuation", ""},
	{"System.MulticastDelegate", action, "_target", ""},
	{"System.Collections.Generic.List`1", list, "_items", ""},
	{"System.Threading.CancellationTokenSource", tokenSource, "_timer", ""},
}

// shapes finds and caches the roles of types.
type shapes struct {
	names *naming.Names
	types *objects.Types
	of    map[*objects.Type]*shape
}

func (s *shapes) shape(t *objects.Type) *shape {
	sh, ok := s.of[t]
	if !ok {
		sh = s.classify(t)
		s.of[t] = sh
	}
	return sh
}

func (s *shapes) classify(t *objects.Type) *shape {
	sh := &shape{}
	for i := range known {
		k := &known[i]
		if !t.Is(k.typ) {
			continue
		}
		sh.kind, sh.name, sh.valid = k.kind, k.shown, true
		switch k.kind {
		case box:
			sh.state, sh.valid = t.Field(k.field)
			sh.name = s.method(t)
			s.machine(sh, t)
			fallthrough
		case task, combined, oneWay:
			flags, ok1 := t.Field("m_stateFlags")
			next, ok2 := t.Field("m_continuationObject")
			sh.timer, _ = t.Field("_timer")
			if k.shown == taskRun {
				sh.lookForOce, _ = t.Field("_lookForOce")
			}
			if k.kind == task && k.field != "" {
				sh.state = objectHeader
				sh.awaiters = t.Spans(func(name string) bool { return name == k.field })
			}
			if sh.flags, sh.next = flags, next; !ok1 || !ok2 {
				sh.valid, sh.flags, sh.next = sh.valid && k.kind == box, 0, 0 // a pooled box is not a Task
			}
		case wrapper, action, list, tokenSource:
			sh.next, sh.valid = t.Field(k.field)
		}
		break
	}
	if sh.name == "" {
		sh.name = strings.TrimSuffix(s.names.TypeOf(t.Table), "<VoidTaskResult>") // it means "no result"
	}
	return sh
}

// machineTable returns the MethodTable of a box's state machine, 0 if it cannot be read.
func (s *shapes) machineTable(t *objects.Type) uint64 {
	for ; t != nil; t = t.Parent {
		if strings.HasSuffix(t.Name, "StateMachineBox`1") {
			return s.names.LastArg(t.Table)
		}
	}
	return 0
}

// method returns the async method of a box's type, or the state machine's type if the method is
// unknown.
func (s *shapes) method(t *objects.Type) string {
	machine := s.machineTable(t)
	if name := s.names.Resumed(machine); name != "" {
		method, _ := Body(name)
		return method
	}
	return s.names.TypeOf(machine)
}

// machine finds the fields of a box's state machine that hold awaiters, and whether the state machine
// is a class. If no field has a known compiler's name, all fields may hold awaiters.
func (s *shapes) machine(sh *shape, t *objects.Type) {
	machine := s.types.Of(s.machineTable(t))
	if machine == nil {
		return
	}
	sh.class = !machine.Is("System.ValueType")
	sh.awaiters = machine.Spans(func(name string) bool { // C#, Mono's C#, Visual Basic
		return strings.HasPrefix(name, "<>u__") || strings.HasPrefix(name, "$awaiter") ||
			strings.HasPrefix(name, "$A")
	})
	if len(sh.awaiters) == 0 {
		sh.awaiters = machine.Spans(func(string) bool { return true })
	}
}

// Bits of Task.m_stateFlags.
const (
	stateInvoked = 0x20000
	stateEnded   = 0x1000000 | 0x400000 | 0x200000 // ran to completion, canceled, faulted
)
