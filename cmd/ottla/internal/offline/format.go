package offline

import (
	"io"
	"time"

	"ottla/protocol"
	"ottla/storage/vfs"
)

// Quorum says what the first snapshot tells of the voters.
type Quorum int8

const (
	// StaticVoters: controller.quorum.voters is set, or this node is only a broker; no voters are written.
	StaticVoters Quorum = iota
	// Standalone: this node is the only voter (--standalone).
	Standalone
	// InitialControllers: FormatOptions.Voters are the voters (--initial-controllers).
	InitialControllers
	// NoInitialControllers: the voters are learned from the quorum that this node joins (--no-initial-controllers).
	NoInitialControllers
)

// Voter is one of the first controllers.
type Voter struct {
	ID          protocol.NodeID
	DirectoryID protocol.DirectoryID
	Host        string
	Port        uint16
}

// Feature is a feature with its level, 0 being off.
type Feature struct {
	Name  string
	Level int16
}

// FormatOptions is what format is told. The command line's option is named beside each.
type FormatOptions struct {
	ClusterID       string // -t
	NodeID          protocol.NodeID
	Dirs            []string // log.dirs
	MetadataDir     string   // metadata.log.dir; "" is the first of Dirs
	Controller      bool     // process.roles has controller
	Quorum          Quorum
	Voters          []Voter   // --initial-controllers; for Standalone: this node, its DirectoryID may be zero
	ListenerName    string    // the first of controller.listener.names
	ReleaseVersion  string    // --release-version, as "4.4" or "4.4-IV2"; "" is the newest
	Features        []Feature // --feature, in the order given
	IgnoreFormatted bool      // --ignore-formatted
	Scram           []string  // --add-scram, as given

	// DefaultFeatures are finalized at their levels unless Features names them: what this program serves. nil is
	// DefaultFeatures().
	DefaultFeatures []Feature
}

// DefaultFeatures are the features that a new cluster finalizes beside metadata.version and kraft.version.
func DefaultFeatures() []Feature { panic("being written") }

// Format formats the directories; see doc.go. It writes a line for each to out.
func Format(now time.Time, fsys vfs.FS, random func() uint64, o FormatOptions, out io.Writer) error {
	panic("being written")
}

// Formatted tells which directories have a meta.properties.
func Formatted(fsys vfs.FS, dirs []string) (formatted, empty []string, err error) {
	panic("being written")
}

// ParseVoters reads the value of --initial-controllers: id@host:port:directory, comma separated.
func ParseVoters(text string) ([]Voter, error) { panic("being written") }

// ParseFeature reads the value of --feature: name=level.
func ParseFeature(text string) (Feature, error) { panic("being written") }
