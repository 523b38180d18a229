package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/spf13/cobra"

	"ottla/cmd/ottla/internal/node"
	"ottla/cmd/ottla/internal/offline"
	"ottla/controller/config"
	"ottla/storage/vfs"
)

// formatFlags are those of kafka-storage format.
type formatFlags struct {
	clusterID          string
	config             string
	standalone         bool
	initialControllers string
	noInitial          bool
	release            string
	features           []string
	ignoreFormatted    bool
	scram              []string
}

func formatCommand() *cobra.Command {
	var flags formatFlags
	command := &cobra.Command{
		Use:   "format -t CLUSTER_ID -c server.properties",
		Short: "Make log directories ready for their first start",
		Args:  arguments(cobra.NoArgs),
		RunE:  func(cmd *cobra.Command, _ []string) error { return format(cmd.OutOrStdout(), flags) },
	}
	f := command.Flags()
	f.StringVarP(&flags.clusterID, "cluster-id", "t", "", "the id of the cluster (22 characters), the same on every node")
	f.StringVarP(&flags.config, "config", "c", "", "the node's server.properties")
	f.BoolVarP(&flags.standalone, "standalone", "s", false, "this node alone is the quorum")
	f.StringVarP(&flags.initialControllers, "initial-controllers", "I", "", "the first quorum, as id@host:port:directory,…")
	f.BoolVarP(&flags.noInitial, "no-initial-controllers", "N", false, "this node joins a quorum that exists")
	f.StringVarP(&flags.release, "release-version", "r", "", "the release whose features to begin with, as 4.4")
	f.StringArrayVarP(&flags.features, "feature", "f", nil, "a feature to begin with, as name=level; may be repeated")
	f.BoolVarP(&flags.ignoreFormatted, "ignore-formatted", "g", false, "leave directories alone that are formatted already")
	f.StringArrayVarP(&flags.scram, "add-scram", "S", nil, "a SCRAM credential to begin with; may be repeated")
	return command
}

func format(out io.Writer, flags formatFlags) error {
	if flags.clusterID == "" || flags.config == "" {
		return usageError{errors.New("format needs --cluster-id and --config")}
	}
	settings, err := brokerConfig(flags.config, nil, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	options, err := flags.options(settings)
	if err != nil {
		return usageError{err}
	}
	return offline.Format(time.Now(), vfs.OS(), node.SecureRandom, options, out)
}

func (f formatFlags) options(settings *config.BrokerConfig) (offline.FormatOptions, error) {
	options := offline.FormatOptions{
		ClusterID: f.clusterID, NodeID: settings.NodeID, Dirs: settings.LogDirs, MetadataDir: settings.MetadataLogDir,
		Controller: settings.Controller, StaticVoters: len(settings.QuorumVoters) > 0,
		ListenerName: settings.ControllerListenerNames[0], ReleaseVersion: f.release, IgnoreFormatted: f.ignoreFormatted, Scram: f.scram,
		DefaultFeatures: node.DefaultFeatures(),
	}
	for _, text := range f.features {
		feature, err := offline.ParseFeature(text)
		if err != nil {
			return options, err
		}
		options.Features = append(options.Features, feature)
	}
	given := 0
	for _, set := range []bool{f.standalone, f.initialControllers != "", f.noInitial} {
		if set {
			given++
		}
	}
	if given > 1 {
		return options, errors.New("--standalone, --initial-controllers and --no-initial-controllers exclude each other")
	}
	var err error
	switch {
	case f.standalone:
		hostname, hostErr := os.Hostname()
		if hostErr != nil {
			return options, fmt.Errorf("this machine's name cannot be had: %w", hostErr)
		}
		options.Quorum = offline.Standalone
		options.Voters, err = node.StandaloneVoter(settings, hostname)
	case f.initialControllers != "":
		options.Quorum = offline.InitialControllers
		options.Voters, err = offline.ParseVoters(f.initialControllers)
	case f.noInitial:
		options.Quorum = offline.NoInitialControllers
	}
	return options, err
}
