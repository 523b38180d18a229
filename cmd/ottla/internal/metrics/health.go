package metrics

import (
	"fmt"
	"path"

	"ottla/cmd/ottla/internal/broker"
)

// Healthy tells why the metadata log cannot be written, if so: its directory failed
// or is full. That the process is alive is told by there being an answer.
func (c *Collector) Healthy() error {
	for _, directory := range c.source.Store.Directories() {
		if directory.Path != path.Clean(c.source.Config.MetadataLogDir) {
			continue
		}
		if directory.Offline != nil {
			return fmt.Errorf("the metadata log directory %s is offline: %w", directory.Path, directory.Offline)
		}
		if total, usable, err := c.source.Store.Usage(directory.ID); err == nil && total > 0 && usable == 0 {
			return fmt.Errorf("the metadata log directory %s is full", directory.Path)
		}
	}
	return nil
}

// Ready tells why clients are not served, if so: the broker is not running or is
// fenced, or coordinators of groups are being loaded or cannot be.
func (c *Collector) Ready() error {
	if state := c.source.State(); state != broker.Running {
		return fmt.Errorf("the broker is %s", state)
	}
	if own := c.source.Image().Broker(c.source.NodeID); own == nil || own.Fenced {
		return fmt.Errorf("the broker %d is fenced", c.source.NodeID)
	}
	if loading, _, failed := c.source.Groups.Counts(); loading+failed > 0 {
		return fmt.Errorf("of the coordinators of groups %d are being loaded and %d failed", loading, failed)
	}
	return nil
}
