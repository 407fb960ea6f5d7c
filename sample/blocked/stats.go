package blocked

import "github.com/seedwalk/seedwalk/unwind"

// Stats count the results for waits that were old enough.
type Stats struct {
	Tried, Joined   int64
	Ran             int64 // the thread ran while its stack was read
	Unjoined        int64 // the walk did not reach managed code
	Late            int64 // the copy was not entirely within the wait, by the clock of its events
	Unreadable      int64
	Lost            int64       // the end of the wait is unknown
	Whole           int64       // joined, with native frames between managed ones or at the root
	LastStop        unwind.Stop // why the last unjoined walk ended
	LastStopAddress uint64
}
