package offline

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"time"

	"ottla/protocol"
	"ottla/storage/logdir"
	"ottla/storage/vfs"
)

// Quorum says what the first snapshot tells of the voters.
type Quorum int8

const (
	// NoQuorumFlag: none of the three options is given. It is right where controller.quorum.voters is set, and for
	// a node that is only a broker.
	NoQuorumFlag Quorum = iota
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

// FormatOptions is what format is told. The command line's option, or the property, is named beside each.
type FormatOptions struct {
	ClusterID    string          // -t
	NodeID       protocol.NodeID // node.id
	Dirs         []string        // log.dirs
	MetadataDir  string          // metadata.log.dir; "" is the first of Dirs
	Controller   bool            // process.roles has controller
	StaticVoters bool            // controller.quorum.voters is set
	Quorum       Quorum
	// Voters are those of --initial-controllers, or for Standalone this node alone, with the host and port of its
	// first controller listener as advertised; its DirectoryID may be zero and is chosen then.
	Voters          []Voter
	ListenerName    string    // the first of controller.listener.names
	ReleaseVersion  string    // --release-version, as "4.4" or "4.4-IV2"; "" is the newest
	Features        []Feature // --feature, in the order given; the last of a name counts
	IgnoreFormatted bool      // --ignore-formatted
	Scram           []string  // --add-scram, as given

	// DefaultFeatures are the levels of features that Features does not name, or the lower ones that the release
	// version asks for: what this program serves. A feature that is in neither is not finalized.
	DefaultFeatures []Feature
}

// target is one directory to format.
type target struct {
	path     string
	id       protocol.DirectoryID
	metadata bool
}

// Format formats the directories; see doc.go. It writes a line for each to out.
func Format(now time.Time, fsys vfs.FS, random func() uint64, o FormatOptions, out io.Writer) error {
	if err := o.check(); err != nil {
		return err
	}
	levels, err := o.levels()
	if err != nil {
		return err
	}
	credentials, err := parseScram(o.Scram, levels.version, random)
	if err != nil {
		return err
	}
	targets, err := o.targets(fsys)
	if err != nil {
		return err
	}
	if len(targets) == 0 {
		fmt.Fprintln(out, "All of the log directories are formatted already.")
		return nil
	}
	// The metadata directory comes last: whoever finds it formatted finds all of them so.
	slices.SortStableFunc(targets, func(a, b target) int {
		return boolRank(a.metadata) - boolRank(b.metadata)
	})
	for i := range targets {
		o.chooseID(&targets[i], random)
	}
	for _, t := range targets {
		fmt.Fprintf(out, "Formatting %s %s with metadata.version %s.\n", o.describe(t), t.path, levels.version)
		if err := o.format(now, fsys, t, levels, credentials); err != nil {
			return fmt.Errorf("cannot format %s: %w", t.path, err)
		}
	}
	for _, t := range targets {
		if err := vfs.PutInPlace(fsys, path.Join(t.path, logdir.MetaPropertiesFile)); err != nil {
			return fmt.Errorf("cannot format %s: %w", t.path, err)
		}
	}
	return nil
}

func boolRank(b bool) int {
	if b {
		return 1
	}
	return 0
}

// check refuses options that contradict each other, as StorageTool does.
func (o *FormatOptions) check() error {
	if o.ClusterID == "" {
		return errors.New("a cluster id is needed")
	}
	if o.MetadataDir == "" && len(o.Dirs) > 0 {
		o.MetadataDir = o.Dirs[0]
	}
	if o.MetadataDir == "" {
		return errors.New("neither log.dirs nor metadata.log.dir names a directory")
	}
	switch {
	case o.Quorum == Standalone && !o.Controller:
		return errors.New("--standalone makes this node the only controller, but process.roles has no controller")
	case o.StaticVoters && (o.Quorum == Standalone || o.Quorum == InitialControllers):
		return errors.New("controller.quorum.voters is set, so the voters are static: neither --standalone nor " +
			"--initial-controllers can be used (set controller.quorum.bootstrap.servers instead)")
	case o.Controller && !o.StaticVoters && o.Quorum == NoQuorumFlag:
		return errors.New("controller.quorum.voters is not set: one of --standalone, --initial-controllers and " +
			"--no-initial-controllers must say who votes")
	}
	return o.checkVoters()
}

func (o *FormatOptions) checkVoters() error {
	if o.Quorum != Standalone && o.Quorum != InitialControllers {
		return nil
	}
	if len(o.Voters) == 0 {
		return errors.New("a quorum needs at least one voter")
	}
	if o.ListenerName == "" {
		return errors.New("voters need a listener: controller.listener.names is empty")
	}
	if o.Quorum == Standalone && (len(o.Voters) != 1 || o.Voters[0].ID != o.NodeID) {
		return fmt.Errorf("--standalone makes node %d the only voter", o.NodeID)
	}
	slices.SortStableFunc(o.Voters, func(a, b Voter) int { return int(a.ID) - int(b.ID) })
	for i, v := range o.Voters {
		if i > 0 && o.Voters[i-1].ID == v.ID {
			return fmt.Errorf("the voter %d is named twice", v.ID)
		}
	}
	return nil
}

// dynamic tells whether the log itself will hold the voters (KIP-853).
func (o *FormatOptions) dynamic() bool { return !o.StaticVoters && o.Quorum != NoQuorumFlag }

// targets lists the directories that have no meta.properties yet. All are looked at before any is written.
func (o *FormatOptions) targets(fsys vfs.FS) ([]target, error) {
	var targets []target
	for _, dir := range directories(o.Dirs, o.MetadataDir) {
		m, err := logdir.ReadMetaProperties(fsys, dir)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			t := target{path: dir, metadata: dir == path.Clean(o.MetadataDir)}
			if err := refuseOldLog(fsys, dir); err != nil {
				return nil, err
			}
			targets = append(targets, t)
		case err != nil:
			return nil, fmt.Errorf("cannot tell whether %s is formatted: %w", dir, err)
		case m.ClusterID != o.ClusterID:
			return nil, fmt.Errorf("%s belongs to the cluster %s, not to %s", dir, m.ClusterID, o.ClusterID)
		case m.NodeID != o.NodeID:
			return nil, fmt.Errorf("%s belongs to node %d, not to node %d", dir, m.NodeID, o.NodeID)
		case !o.IgnoreFormatted:
			return nil, fmt.Errorf("%s is formatted already; --ignore-formatted leaves it as it is and formats the others", dir)
		default:
			// A format that was interrupted may have written it, and not have come to this.
			if err := makeDurably(fsys, dir); err != nil {
				return nil, err
			}
			if err := fsys.SyncDir(dir); err != nil {
				return nil, err
			}
		}
	}
	return targets, nil
}

// directories lists log.dirs and metadata.log.dir, each once.
func directories(dirs []string, metadata string) []string {
	var all []string
	for _, dir := range append(slices.Clone(dirs), metadata) {
		if dir = path.Clean(dir); !slices.Contains(all, dir) {
			all = append(all, dir)
		}
	}
	return all
}

// refuseOldLog keeps a metadata log that lost its meta.properties from being mixed with a new cluster's first
// snapshot. StorageTool writes over it.
func refuseOldLog(fsys vfs.FS, dir string) error {
	entries, err := fsys.ReadDir(path.Join(dir, metadataPartitionDir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		if path.Ext(e.Name) == ".log" && e.Size > 0 {
			return fmt.Errorf("%s has no %s, but holds the metadata log of a cluster: restore the file, or move the directory away",
				dir, logdir.MetaPropertiesFile)
		}
	}
	return nil
}

// chooseID gives a directory its id: the voter's for this node's metadata directory, else a new one.
func (o *FormatOptions) chooseID(t *target, random func() uint64) {
	t.id = protocol.NewUUID(random)
	voter := o.voter()
	if voter == nil || !t.metadata {
		return
	}
	if voter.DirectoryID.IsZero() {
		voter.DirectoryID = t.id
	}
	t.id = voter.DirectoryID
}

// voter is this node among the voters, or nil.
func (o *FormatOptions) voter() *Voter {
	if o.Quorum != Standalone && o.Quorum != InitialControllers {
		return nil
	}
	for i := range o.Voters {
		if o.Voters[i].ID == o.NodeID {
			return &o.Voters[i]
		}
	}
	return nil
}

func (o *FormatOptions) describe(t target) string {
	switch {
	case !t.metadata:
		return "data directory"
	case o.voter() != nil:
		return "dynamic metadata voter directory"
	case o.Quorum == InitialControllers:
		return "dynamic metadata directory"
	default:
		return "metadata directory"
	}
}

// format writes one directory. Its meta.properties, which makes it count as formatted, is put in place when all
// directories are so far: FinishFormat can go on from there.
func (o *FormatOptions) format(now time.Time, fsys vfs.FS, t target, levels featureLevels, credentials []credential) error {
	if err := makeDurably(fsys, t.path); err != nil {
		return err
	}
	if t.metadata && o.Controller {
		dir := path.Join(t.path, metadataPartitionDir)
		if err := makeDurably(fsys, dir); err != nil {
			return err
		}
		snapshot := o.snapshot(now.UnixMilli(), levels, credentials)
		if err := vfs.WriteFileAtomic(fsys, path.Join(dir, firstSnapshot), snapshot); err != nil {
			return err
		}
	}
	return logdir.PrepareMetaProperties(fsys, t.path, logdir.MetaProperties{
		ClusterID: o.ClusterID, NodeID: o.NodeID, DirectoryID: t.id,
	})
}

// makeDurably makes a directory and its parents, each of which survives a power cut. Parents that exist are synced as
// well: a format that was interrupted may have made them. Those that this user may not even open it has not made.
func makeDurably(fsys vfs.FS, dir string) error {
	if err := fsys.MkdirAll(dir); err != nil {
		return err
	}
	for at := dir; at != path.Dir(at); at = path.Dir(at) {
		err := fsys.SyncDir(path.Dir(at))
		if errors.Is(err, fs.ErrPermission) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}
