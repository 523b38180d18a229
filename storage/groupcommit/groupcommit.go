package groupcommit

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"ottla/storage/vfs"
)

const (
	// leastCrowd is how many must have waited at once, in the mean, for a sync together: two go apart.
	leastCrowd = 3
	// crowdWeight is how many arrivals the mean goes over, costWeight how many answers.
	crowdWeight, costWeight = 16, 16
	// trialSyncs is how often the other way is taken before it is judged, trialShare what part of the waiting that may be.
	trialSyncs, trialShare = 32, 30
)

// way is how a file is made durable.
type way int

const (
	apart    way = iota // by a sync of its own
	together            // by one of the file system, with others
)

// Directory is one log directory. A nil one syncs each file by itself. All methods may be called at any time from anywhere.
type Directory struct {
	fs    vfs.FS
	file  string
	clock func() time.Time
	round vfs.Shared

	opening sync.Mutex // keeps whole; a leaf
	whole   vfs.File   // a file of the directory, kept open so that no failed write passes between two syncs

	mu    sync.Mutex
	busy  int     // who waits
	crowd float64 // the mean of busy
	usual way
	trial int              // so many go the other way
	cost  [2]time.Duration // what one waits, in the mean; 0: not known
	spent time.Duration    // waited since the last trial
	never bool             // the file system cannot be synced as a whole
}

// New makes one. file is any file in the directory that is always there; clock tells the time, and nil is a nil Directory.
func New(fsys vfs.FS, file string, clock func() time.Time) *Directory {
	if clock == nil {
		return nil
	}
	return &Directory{fs: fsys, file: file, clock: clock, usual: together}
}

// Sync returns when what the caller has written is durable: alone is how it would be by itself.
func (d *Directory) Sync(alone func() error) error {
	if d == nil {
		return alone()
	}
	how, measured := d.begin()
	begun := d.clock()
	var err error
	if how == together {
		err = d.round.Do(d.syncWhole)
	}
	if how == apart || errors.Is(err, errors.ErrUnsupported) {
		err = alone()
	}
	d.end(how, measured, d.clock().Sub(begun))
	return err
}

// begin decides how somebody is served, and whether he tells what that costs: one who finds nobody else does not.
func (d *Directory) begin() (how way, measured bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.busy++
	d.crowd += (float64(d.busy) - d.crowd) / crowdWeight
	if d.never || d.crowd < leastCrowd {
		return apart, false
	}
	other := together - d.usual
	if d.trial == 0 && d.spent >= trialSyncs*trialShare*d.cost[other] {
		d.trial, d.spent, d.cost[other] = trialSyncs, 0, 0
	}
	if d.trial > 0 {
		d.trial--
		return other, true
	}
	return d.usual, true
}

func (d *Directory) end(how way, measured bool, waited time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.busy--
	if !measured {
		return
	}
	d.spent += waited
	if d.cost[how] == 0 {
		d.cost[how] = waited
	}
	d.cost[how] += (waited - d.cost[how]) / costWeight
	if other := together - d.usual; d.trial == 0 && d.cost[other] > 0 && d.cost[other] < d.cost[d.usual] {
		d.usual, d.spent = other, 0
	}
}

func (d *Directory) syncWhole() error {
	file, err := d.open()
	if err == nil {
		err = vfs.SyncWhole(file)
	} else {
		err = fmt.Errorf("%w: %w", errors.ErrUnsupported, err) // if that is the disk, the others will say so
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.never = d.never || errors.Is(err, errors.ErrUnsupported)
	return err
}

func (d *Directory) open() (vfs.File, error) {
	d.opening.Lock()
	defer d.opening.Unlock()
	if d.whole == nil {
		file, err := d.fs.OpenFile(d.file, os.O_RDONLY)
		if err != nil {
			return nil, err
		}
		d.whole = file
	}
	return d.whole, nil
}

// Close lets the directory go; nobody calls Sync any more.
func (d *Directory) Close() error {
	if d == nil {
		return nil
	}
	d.opening.Lock()
	defer d.opening.Unlock()
	if d.whole == nil {
		return nil
	}
	file := d.whole
	d.whole = nil
	return file.Close()
}
