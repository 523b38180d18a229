package node

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"time"

	"ottla/cmd/ottla/internal/offline"
	"ottla/controller/config"
	"ottla/protocol"
)

// format formats the directories if all of them are empty and this node alone
// decides what the cluster is. Where one is formatted or holds something, a
// directory that is not formatted may be a disk that was not mounted.
func (n *Node) format(now time.Time) error {
	if err := offline.FinishFormat(n.options.FS, n.config.LogDirs, n.config.MetadataLogDir); err != nil {
		return err
	}
	empty, err := offline.CheckAutoFormat(n.options.FS, n.config.LogDirs, n.config.MetadataLogDir)
	if err != nil || !empty {
		return err // what is formatted already is judged by store.Prepare
	}
	if !n.config.Controller {
		return fmt.Errorf("%s is not formatted, and this node joins a cluster of other controllers: run ottla format with their cluster id first", n.config.LogDirs[0])
	}
	if !n.config.Bool("ottla.auto.format") {
		return fmt.Errorf("%s is not formatted, and ottla.auto.format is false: run ottla format first", n.config.LogDirs[0])
	}
	if !onlyVoter(n.config, n.options.Hostname) {
		return fmt.Errorf("%s is not formatted, and the configuration does not make this node the only voter of its quorum (%s): "+
			"if it is to be, name its own controller listener there; else run ottla format on every node first", n.config.LogDirs[0], quorumOf(n.config))
	}
	options := offline.FormatOptions{
		ClusterID: protocol.NewUUID(n.options.Random).String(), NodeID: n.config.NodeID, Dirs: n.config.LogDirs,
		MetadataDir: n.config.MetadataLogDir, Controller: true, StaticVoters: len(n.config.QuorumVoters) > 0,
		ListenerName: n.config.ControllerListenerNames[0], DefaultFeatures: DefaultFeatures(),
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
	n.fresh = true
	n.options.Logger.Info("formatted the empty directories as a new cluster of one node",
		slog.Any("directories", n.config.LogDirs), "clusterId", options.ClusterID)
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

// onlyVoter tells whether the configuration makes this node the whole quorum.
func onlyVoter(node *config.BrokerConfig, hostname string) bool {
	if len(node.QuorumVoters) > 0 {
		return len(node.QuorumVoters) == 1 && node.QuorumVoters[0].ID == node.NodeID
	}
	if len(node.BootstrapServers) != 1 {
		return false
	}
	server := node.BootstrapServers[0]
	for _, own := range node.AdvertisedControllers {
		if own.Port == server.Port && (own.Host == server.Host || own.Host == "" && server.Host == hostname) {
			return true
		}
	}
	for _, own := range node.Listeners {
		if own.Port == server.Port && slices.Contains(node.ControllerListenerNames, own.Name) && reaches(server.Host, own.Host, hostname) {
			return true
		}
	}
	return false
}

// quorumOf says in words which quorum is configured, beside this node's own
// controller listeners.
func quorumOf(node *config.BrokerConfig) string {
	var own []string
	for _, l := range node.AdvertisedControllers {
		own = append(own, fmt.Sprintf("%s:%d", l.Host, l.Port))
	}
	name := "controller.quorum.bootstrap.servers"
	if len(node.QuorumVoters) > 0 {
		name = "controller.quorum.voters"
	}
	return fmt.Sprintf("%s is %q, and it listens on %s", name, strings.Join(node.List(name), ","), strings.Join(own, ","))
}

// reaches tells whether a connection to host arrives at a socket of this machine
// that is bound to bound.
func reaches(host, bound, hostname string) bool {
	local := host == "localhost" || host == hostname
	if ip, err := netip.ParseAddr(host); err == nil {
		local = ip.IsLoopback()
	}
	if ip, err := netip.ParseAddr(bound); bound == "" || err == nil && ip.IsUnspecified() {
		return local
	}
	return host == bound
}
