package offline

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"ottla/controller/metadata"
	"ottla/protocol"
	"ottla/storage/logdir"
	"ottla/storage/store"
	"ottla/storage/vfs"
)

// Examined is what is known of the directories of a node that is not running. Print says it in words.
type Examined struct {
	NodeID      protocol.NodeID
	Directories []Looked
	Served      map[string]Levels // of each feature, by this build
	// Observes: the node is no controller. The Image is then what its own copy of the metadata log holds.
	Observes bool

	Groups UnservedGroups

	// Refused is why a start on the directories fails. What follows is empty then, as far as the start did not come.
	Refused      error
	Image        *metadata.Image
	Report       store.Report
	KRaftVersion int16
	Voters       []protocol.NodeID
}

// Levels are the levels of a feature that are served.
type Levels struct{ Min, Max int16 }

// Looked is one directory as its names and meta.properties show it.
type Looked struct {
	Path     string
	Metadata bool // it holds the metadata log
	Meta     logdir.MetaProperties
	Err      error // of meta.properties; fs.ErrNotExist, wrapped: it is not formatted
	// Partitions are the directories with a partition's plain name.
	Partitions []protocol.TopicPartition
	// Deleted, Future and Stray count those with the suffix of their kind.
	Deleted, Future, Stray int
}

// LookAt looks at the log directories and the metadata directory.
func LookAt(fsys vfs.FS, dirs []string, metadataDir string) []Looked {
	metadataDir = path.Clean(metadataDirectory(dirs, metadataDir))
	var all []Looked
	for _, dir := range directories(dirs, metadataDir) {
		looked := Looked{Path: dir, Metadata: dir == metadataDir}
		looked.Meta, looked.Err = logdir.ReadMetaProperties(fsys, dir)
		entries, err := fsys.ReadDir(dir)
		if looked.Err == nil {
			looked.Err = err
		}
		for _, entry := range entries {
			if entry.Dir {
				looked.count(entry.Name)
			}
		}
		all = append(all, looked)
	}
	return all
}

func (l *Looked) count(name string) {
	switch tp, err := protocol.ParseTopicPartition(name); {
	case strings.HasSuffix(name, "-delete"):
		l.Deleted++
	case strings.HasSuffix(name, "-future"):
		l.Future++
	case strings.HasSuffix(name, "-stray"):
		l.Stray++
	case err == nil && tp.Topic != protocol.ClusterMetadataTopic:
		l.Partitions = append(l.Partitions, tp)
	}
}

// unsafe gives the reasons not to start on the directories, a sentence each.
func (e *Examined) unsafe() []string {
	var reasons []string
	if e.Refused != nil {
		return []string{e.Refused.Error()}
	}
	for _, directory := range e.Report.Directories {
		if directory.Offline != nil {
			reasons = append(reasons, directory.Path+" does not work: "+directory.Offline.Error())
		}
		for _, damaged := range directory.Damaged {
			reasons = append(reasons, damaged.Err.Error()+": the partition would be offline")
		}
	}
	for _, name := range featureNames(e.Image.Features()) {
		level := e.Image.Feature(name)
		if served, ok := e.Served[name]; name == metadata.MetadataVersionFeature && ok && (level < served.Min || level > served.Max) {
			reasons = append(reasons, fmt.Sprintf("metadata.version is %s, and %s to %s are served", metadata.MetadataVersion(level),
				metadata.MetadataVersion(served.Min), metadata.MetadataVersion(served.Max)))
		}
	}
	return append(reasons, e.elsewhere()...)
}

// elsewhere gives the reasons that lie outside these directories.
func (e *Examined) elsewhere() []string {
	var reasons []string
	var shared, absent int
	ids := map[protocol.DirectoryID]bool{}
	for _, d := range e.Directories {
		ids[d.Meta.DirectoryID] = true
	}
	for topic := range e.Image.Topics() {
		for _, partition := range topic.Partitions() {
			if !e.Observes && slices.ContainsFunc(partition.Replicas, func(id protocol.NodeID) bool { return id != e.NodeID }) {
				shared++
			} else if id := partition.Directory(e.NodeID); !assignable(id) && !ids[id] {
				absent++
			}
		}
	}
	if shared > 0 {
		reasons = append(reasons, count(shared, "partition has replicas", "partitions have replicas")+" on other brokers, and of a node that is a controller too, replicas are not served yet")
	}
	if absent > 0 {
		reasons = append(reasons, count(absent, "partition lies", "partitions lie")+" in a log directory that was not named")
	}
	return reasons
}

// assignable tells the ids that name no directory: Kafka's unassigned, lost and migrating.
func assignable(id protocol.DirectoryID) bool {
	last := len(id) - 1
	return id[last] < 100 && !slices.ContainsFunc(id[:last], func(b byte) bool { return b != 0 })
}

// ErrNotSafe means that a node should not be started on the directories; what was printed says why.
var ErrNotSafe = errors.New("it is not safe to start on these directories")
