package node

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path"
	"strings"
	"time"

	"ottla/cmd/ottla/internal/offline"
	"ottla/controller/config"
	"ottla/protocol"
	"ottla/storage/store"
)

// format formats the directories if all of them are empty and this node alone
// decides what the cluster is. Where one is formatted or holds something, a
// directory that is not formatted may be a disk that was not mounted.
func (n *Node) format(now time.Time) error {
	for _, dir := range n.allDirectories() {
		_, err := n.options.FS.Stat(path.Join(dir, store.MetaPropertiesFile))
		if !errors.Is(err, fs.ErrNotExist) {
			return err // formatted, at least in part: store.Prepare judges it
		}
	}
	if !n.config.Bool("ottla.auto.format") {
		return fmt.Errorf("%s is not formatted, and ottla.auto.format is false: run ottla format first", n.config.LogDirs[0])
	}
	if !onlyVoter(n.config) {
		return fmt.Errorf("%s is not formatted, and this node is not the only voter of its quorum: run ottla format on every node first", n.config.LogDirs[0])
	}
	for _, dir := range n.allDirectories() {
		if err := n.mustBeEmpty(dir); err != nil {
			return err
		}
	}
	var err error
	options := offline.FormatOptions{
		ClusterID: protocol.NewUUID(n.options.Random).String(), NodeID: n.config.NodeID, Dirs: n.config.LogDirs,
		MetadataDir: n.config.MetadataLogDir, Controller: true, StaticVoters: len(n.config.QuorumVoters) > 0,
		ListenerName: n.config.ControllerListenerNames[0],
	}
	if !options.StaticVoters {
		options.Quorum = offline.Standalone
		if options.Voters, err = StandaloneVoter(n.config, n.options.Hostname); err != nil {
			return err
		}
	}
	var said strings.Builder
	if err = offline.Format(now, n.options.FS, n.options.Random, options, &said); err != nil {
		return err
	}
	n.options.Logger.Info("formatted the empty directories as a new cluster of one node",
		slog.Any("directories", n.allDirectories()), "clusterId", options.ClusterID)
	return nil
}

// StandaloneVoter is this node as the only voter, at its first controller
// listener. hostname stands in where the configuration names no host.
func StandaloneVoter(node *config.BrokerConfig, hostname string) ([]offline.Voter, error) {
	if len(node.AdvertisedControllers) == 0 {
		return nil, errors.New("this node has no controller listener")
	}
	controller := node.AdvertisedControllers[0]
	if controller.Host == "" {
		controller.Host = hostname
	}
	return []offline.Voter{{ID: node.NodeID, Host: controller.Host, Port: uint16(controller.Port)}}, nil
}

// allDirectories are log.dirs and metadata.log.dir, each once.
func (n *Node) allDirectories() []string {
	dirs := append([]string{}, n.config.LogDirs...)
	for _, dir := range dirs {
		if dir == n.config.MetadataLogDir {
			return dirs
		}
	}
	return append(dirs, n.config.MetadataLogDir)
}

func (n *Node) mustBeEmpty(dir string) error {
	entries, err := n.options.FS.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if entry.Name != "lost+found" && entry.Name != ".lock" && !leftByFormat(entry.Name) {
			return fmt.Errorf("%s has no meta.properties but is not empty (%s): it was not formatted by itself; run ottla format if that is wanted", dir, entry.Name)
		}
	}
	return nil
}

// leftByFormat tells what a format that was cut short leaves.
func leftByFormat(name string) bool {
	return strings.HasSuffix(name, ".tmp") || name == protocol.ClusterMetadataTopic+"-0"
}

// onlyVoter tells whether the configuration makes this node the whole quorum.
func onlyVoter(node *config.BrokerConfig) bool {
	if len(node.QuorumVoters) > 0 {
		return len(node.QuorumVoters) == 1 && node.QuorumVoters[0].ID == node.NodeID
	}
	if len(node.BootstrapServers) != 1 {
		return false
	}
	server := node.BootstrapServers[0]
	for _, own := range append(append([]config.Listener{}, node.AdvertisedControllers...), node.Listeners...) {
		if own.Host == server.Host && own.Port == server.Port {
			return true
		}
	}
	return false
}
