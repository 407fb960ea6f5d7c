// Package tasks finds the pending async operations in a managed heap and their awaiters.
//
// Sources: dotnet/runtime release/9.0 and release/10.0, System.Private.CoreLib: Task.cs, TaskContinuation.cs,
// AsyncTaskMethodBuilderT.cs, PoolingAsyncValueTaskMethodBuilderT.cs, ManualResetValueTaskSourceCore.cs,
// ThreadPoolWorkQueue.cs, ConcurrentQueueSegment.cs, CancellationTokenSource.cs.
//
// Glossary. A *box* holds the state machine of an async method between two of its awaits; it is the Task that
// the method returned, or the source of its ValueTask. A *source* is an object other than a task that a
// ValueTask waits for. A *continuation* is what a task resumes when it ends. A *chain* is a pending operation
// and everything that waits for it: the operation first, then each method that awaits the one before it.
//
// Strategy. The heap is read in one pass, and only pending tasks are kept. If a collection ran
// meanwhile, the heap is read again. Chains go from a task to the objects in its m_continuationObject.
// A box counts as awaiting a task only if the box refers to the task too, so that garbage makes no
// chain. A chain ends where it meets one of its tasks again. Sources are found in the other direction:
// by the fields of a state machine that hold an awaiter. Type and field names come from metadata.
//
// Known gaps: the methods of .NET 11's runtime async have no boxes. A custom awaiter class hides what
// it waits for: the chain begins with the method. Pending tasks without a waiting async method, thread,
// or task are omitted, except the tasks of async methods.
package tasks
