package main

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"ottla/cmd/ottla/internal/node"
	"ottla/controller/config"
	"ottla/protocol"
	"ottla/storage/logdir"
	"ottla/storage/vfs"
)

func adoptCommand() *cobra.Command {
	var file string
	command := &cobra.Command{
		Use:   "adopt DIR…",
		Short: "Say what the log directories of a stopped node are, and whether it is safe to start on them",
		Long: "Say what the log directories of a stopped node of Apache Kafka or Ottla are, what in them would not be served, and whether it\n" +
			"is safe to start on them. Nothing is changed: the start that is tried keeps all it would write in memory. Name every\n" +
			"directory of log.dirs. With --config the start is that of the node's own configuration; the directories may be left\n" +
			"out then.",
		Args: arguments(cobra.ArbitraryArgs),
		RunE: func(cmd *cobra.Command, dirs []string) error {
			settings, err := adoptSettings(dirs, file, slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), nil)))
			if err != nil {
				return err
			}
			hostname, err := os.Hostname()
			if err != nil {
				return fmt.Errorf("this machine's name cannot be had: %w", err)
			}
			examined := node.Examine(time.Now(), settings, vfs.OS(), hostname)
			return examined.Print(cmd.OutOrStdout())
		},
	}
	command.Flags().StringVarP(&file, "config", "c", "", "the node's server.properties")
	// Nothing else is done yet; scripts that say it stay right when there is more.
	command.Flags().Bool("dry-run", true, "change nothing; it is always so")
	return command
}

// adoptSettings is the configuration of the node: its own, with the directories given, or one that only names them.
func adoptSettings(dirs []string, file string, logger *slog.Logger) (*config.BrokerConfig, error) {
	switch {
	case file == "" && len(dirs) == 0:
		return nil, usageError{errors.New("adopt needs the log directories, or --config")}
	case file == "":
		return bareSettings(dirs)
	case len(dirs) == 0:
		return brokerConfig(file, nil, logger)
	}
	joined, err := joinDirectories(dirs)
	if err != nil {
		return nil, err
	}
	return brokerConfig(file, []string{"log.dirs=" + joined}, logger)
}

func joinDirectories(dirs []string) (string, error) {
	for _, dir := range dirs {
		if strings.Contains(dir, ",") {
			return "", usageError{fmt.Errorf("%s has a comma in its name, which log.dirs cannot say", dir)}
		}
	}
	return strings.Join(dirs, ","), nil
}

// bareSettings is a node of which nothing is known but its directories. That one of them holds the metadata log, its name
// tells.
func bareSettings(dirs []string) (*config.BrokerConfig, error) {
	joined, err := joinDirectories(dirs)
	if err != nil {
		return nil, err
	}
	given := map[string]string{"log.dirs": joined, "metadata.log.dir": dirs[0]}
	id := protocol.NodeID(1)
	for _, dir := range dirs {
		if meta, err := logdir.ReadMetaProperties(vfs.OS(), dir); err == nil {
			id = meta.NodeID
		}
		if _, err := os.Stat(filepath.Join(dir, protocol.ClusterMetadataTopic+"-0")); err == nil {
			given["metadata.log.dir"] = dir
		}
	}
	given["node.id"], given["controller.quorum.voters"] = fmt.Sprint(int32(id)), fmt.Sprintf("%d@localhost:9093", id)
	var overrides []string
	for name, value := range given {
		overrides = append(overrides, name+"="+value)
	}
	top, err := config.FromOverrides(overrides)
	if err != nil {
		return nil, usageError{err}
	}
	settings, _, err := config.Broker(layerSettings(config.Default(), nil, top))
	if err != nil {
		return nil, usageError{err}
	}
	return settings, nil
}
