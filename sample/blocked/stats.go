package blocked

import "github.com/seedwalk/seedwalk/unwind"

// Stats count what became of the waits that were old enough.
type Stats struct {
	Tried, Joined   int64
	Ran             int64 // the thread ran while it was looked at
	Unjoined        int64 // the walk did not come to managed code
	Late            int64 // the wait was over, by its stop's clock
	Unreadable      int64
	Lost            int64       // it is not known until when the wait lasted
	Whole           int64       // joined with all native frames in the middle, too
	LastStop        unwind.Stop // why the last walk that was not joined ended
	LastStopAddress uint64
}
