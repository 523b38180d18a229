package store

import (
	"time"

	"ottla/protocol"
	"ottla/storage/log"
)

// Prepared are directories that are checked and locked, and otherwise as they were found.
type Prepared struct{}

// Prepare checks meta.properties in every directory, then locks the directories. Nothing but .lock changes, so a
// refusal leaves the directories as they were. A directory that the disk cannot read goes offline and the others
// go on; a file that is damaged, missing or of another node or cluster is an error that names it.
func Prepare(o Options) (*Prepared, error) { panic("being written") }

// ClusterID is the cluster's id as meta.properties has it.
func (p *Prepared) ClusterID() string { panic("being written") }

// MetadataDirectory is the directory that holds the metadata partition; its DirectoryID is the voter's.
func (p *Prepared) MetadataDirectory() Directory { panic("being written") }

// MetadataTrust is how far the metadata directory may be trusted.
func (p *Prepared) MetadataTrust() log.Trust { panic("being written") }

// Directories are the log directories in the order of Options.Dirs.
func (p *Prepared) Directories() []Directory { panic("being written") }

// PreviousBrokerEpoch is the broker epoch that the last clean stop left in all directories, or -1: what the
// broker says when it registers (KIP-966).
func (p *Prepared) PreviousBrokerEpoch() protocol.BrokerEpoch { panic("being written") }

// Begin removes the clean-shutdown markers: from now on a crash counts as one. The quorum must not write before.
// A second call does nothing.
func (p *Prepared) Begin() error { panic("being written") }

// Load opens all logs and gives the store. logOptions, if not nil, replaces Options.LogOptions: it is known only
// when the quorum has replayed.
func (p *Prepared) Load(now time.Time, logOptions func(topic string) log.Options) (*Store, Report, error) {
	panic("being written")
}

// Close releases the locks of directories that were not loaded.
func (p *Prepared) Close() error { panic("being written") }
