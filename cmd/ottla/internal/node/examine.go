package node

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"time"

	"ottla/cmd/ottla/internal/offline"
	"ottla/controller/config"
	"ottla/storage/logdir"
	"ottla/storage/vfs"
)

// Examine says what a start with this configuration would find in its directories. It makes such a start, up to where the
// node would open its listeners, on an overlay that keeps every change in memory: the repairs, the refusals and the
// roles are those of a real one, and below nothing changes.
func Examine(now time.Time, settings *config.BrokerConfig, below vfs.FS, hostname string) offline.Examined {
	found := offline.Examined{
		NodeID: settings.NodeID, Directories: offline.LookAt(below, settings.LogDirs, settings.MetadataLogDir),
		Served: map[string]offline.Levels{},
	}
	for name, served := range ServedFeatures {
		found.Served[name] = offline.Levels{Min: served.Min, Max: served.Max}
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
		Fatal: func(err error) { fatal = errors.Join(fatal, err) },
	})
	if err == nil {
		err = n.Start(now)
	}
	found.Refused = err
	if n == nil || n.Image() == nil {
		return found
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
