// Package tasks finds the pending async operations in a managed heap and who awaits whom.
//
// Sources: dotnet/runtime release/9.0 and release/10.0, System.Private.CoreLib: Task.cs,
// TaskContinuation.cs, AsyncTaskMethodBuilderT.cs, PoolingAsyncValueTaskMethodBuilderT.cs,
// ManualResetValueTaskSourceCore.cs, ThreadPoolWorkQueue.cs, ConcurrentQueueSegment.cs.
//
// Glossary. A *box* holds the state machine of an async method between two of its awaits; it
// is the Task that the method returned, or the source of its ValueTask. A *source* is what a
// ValueTask waits for that is no task. A *continuation* is what a task resumes when it ends. A
// *chain* is what one pending operation keeps waiting: the operation first, then each method
// that awaits the one before it.
//
// Strategy. The heap is read once, and only pending tasks are kept. Chains go from a task to
// the objects that its m_continuationObject names. A box counts as awaiting a task only if the
// box refers to the task too, so that what a collection has left behind makes no chain. Sources
// are found the other way round: by the fields of a state machine that hold an awaiter. Names
// of types and fields are those of metadata.
//
// Known gaps: the methods of .NET 11's runtime async are not boxes. An awaiter that is a
// class of its own hides what it waits for: the chain begins with the method. Pending tasks
// that no async method, no thread, and no other task waits for are not shown.
package tasks
