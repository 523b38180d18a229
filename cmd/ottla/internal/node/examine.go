package node

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/cmd/ottla/internal/offline"
	"ottla/controller/config"
	"ottla/controller/raft"
	"ottla/storage/logdir"
	"ottla/storage/vfs"
)

// Examine says what a start with this configuration would find in its directories. It makes such a start, up to where the
// node would open its listeners, on an overlay that keeps every change in memory: the repairs, the refusals and the
// roles are those of a real one, and below nothing changes. A node that is no controller asks nobody: it takes its own copy of
// the metadata log for what is committed.
func Examine(now time.Time, settings *config.BrokerConfig, below vfs.FS, hostname string) offline.Examined {
	found := offline.Examined{
		NodeID: settings.NodeID, Directories: offline.LookAt(below, settings.LogDirs, settings.MetadataLogDir),
		Served: map[string]offline.Levels{}, Observes: !settings.Controller,
	}
	for _, directory := range found.Directories {
		if errors.Is(directory.Err, fs.ErrNotExist) {
			found.Refused = fmt.Errorf("%s is not formatted: it has no %s", directory.Path, logdir.MetaPropertiesFile)
			return found
		}
	}
	var fatal, err error
	if found.Groups, err = offline.LookAtGroups(below, found.Directories); err != nil {
		found.Refused = err
		return found
	}
	n, err := New(now, Options{
		Config: settings, FS: vfs.NewOverlay(below), Random: SecureRandom, Logger: slog.New(slog.DiscardHandler), Hostname: hostname,
		Fatal:    func(err error) { fatal = errors.Join(fatal, err) },
		ToQuorum: func(raft.Address, kmsg.Request, time.Duration, func(kmsg.Response, error)) {},
	})
	if err == nil {
		err = n.startAlone(now)
	}
	found.Refused = err
	if n == nil || n.Image() == nil {
		return found
	}
	for name, served := range n.served() {
		found.Served[name] = offline.Levels{Min: served.Min, Max: served.Max}
	}
	status := n.quorum.Status()
	found.Image, found.Report, found.KRaftVersion = n.Image(), n.report, status.KRaftVersion
	for _, voter := range status.Voters {
		found.Voters = append(found.Voters, voter.ID)
	}
	if err == nil {
		_ = n.Stop(now, false) // of the overlay nothing stays
		found.Refused = fatal
	}
	return found
}

// startAlone is Start, without a word from the controllers.
func (n *Node) startAlone(now time.Time) error {
	if err := n.Begin(now); err != nil {
		return err
	}
	if !n.config.Controller {
		if err := n.quorum.AssumeCommitted(now); err != nil {
			return errors.Join(err, n.Abandon(now))
		}
		if !n.CaughtUp() {
			return errors.Join(errors.New("this broker has no metadata yet: what it would serve, its controllers must say"), n.Abandon(now))
		}
	}
	return n.Open(now)
}
