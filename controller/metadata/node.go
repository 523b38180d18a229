package metadata

import (
	"cmp"
	"encoding/binary"
	"slices"

	"ottla/protocol"
	"ottla/protocol/schema"
)

// Endpoint is where a node listens.
type Endpoint struct {
	Name             string // of the listener
	Host             string
	Port             uint16
	SecurityProtocol int16        // 0 PLAINTEXT, 1 SSL, 2 SASL_PLAINTEXT, 3 SASL_SSL
	UnknownTags      []schema.Tag // kept for snapshots
}

// SupportedRange is the range of a feature's levels that a node can run at.
type SupportedRange struct {
	Name        string
	Min, Max    int16
	UnknownTags []schema.Tag // kept for snapshots
}

// Broker is the registration of a broker.
type Broker struct {
	ID                   protocol.NodeID
	Epoch                protocol.BrokerEpoch
	IncarnationID        protocol.IncarnationID
	Endpoints            []Endpoint
	Features             []SupportedRange
	Rack                 *string
	Fenced               bool
	InControlledShutdown bool
	IsMigratingZK        bool // a broker of 3.x that still had ZooKeeper; kept for snapshots
	LogDirs              []protocol.DirectoryID
	CordonedLogDirs      []protocol.DirectoryID // since 4.3; nil: never told
	UnknownTags          []schema.Tag           // kept for snapshots
}

// Endpoint finds the listener of a name, or gives nil.
func (b *Broker) Endpoint(listener string) *Endpoint { return findEndpoint(b.Endpoints, listener) }

// Feature gives the range of a feature's levels, 0 to 0 if it names none.
func (b *Broker) Feature(name string) SupportedRange { return findRange(b.Features, name) }

// Controller is the registration of a controller (since metadata.version 3.7).
type Controller struct {
	ID               protocol.NodeID
	IncarnationID    protocol.IncarnationID
	ZkMigrationReady bool
	Endpoints        []Endpoint
	Features         []SupportedRange
	UnknownTags      []schema.Tag // kept for snapshots
}

// Endpoint finds the listener of a name, or gives nil.
func (c *Controller) Endpoint(listener string) *Endpoint { return findEndpoint(c.Endpoints, listener) }

// Feature gives the range of a feature's levels, 0 to 0 if it names none.
func (c *Controller) Feature(name string) SupportedRange { return findRange(c.Features, name) }

func findEndpoint(endpoints []Endpoint, listener string) *Endpoint {
	for i := range endpoints {
		if endpoints[i].Name == listener {
			return &endpoints[i]
		}
	}
	return nil
}

func findRange(ranges []SupportedRange, name string) SupportedRange {
	for _, supported := range ranges {
		if supported.Name == name {
			return supported
		}
	}
	return SupportedRange{Name: name}
}

func newBroker(record *schema.RegisterBrokerRecord) *Broker {
	broker := &Broker{
		ID:                   record.BrokerID,
		Epoch:                record.BrokerEpoch,
		IncarnationID:        record.IncarnationID,
		Rack:                 record.Rack,
		Fenced:               record.Fenced,
		InControlledShutdown: record.InControlledShutdown,
		IsMigratingZK:        record.IsMigratingZkBroker,
		LogDirs:              sortedDirectories(record.LogDirs),
		CordonedLogDirs:      record.CordonedLogDirs,
		UnknownTags:          record.UnknownTags,
	}
	for _, e := range record.EndPoints {
		broker.Endpoints = append(broker.Endpoints, Endpoint(e))
	}
	for _, f := range record.Features {
		broker.Features = append(broker.Features, SupportedRange{f.Name, f.MinSupportedVersion, f.MaxSupportedVersion, f.UnknownTags})
	}
	return broker
}

// sortedDirectories orders directories as Kafka's registration does, which takes
// a UUID for two signed numbers.
func sortedDirectories(directories []protocol.DirectoryID) []protocol.DirectoryID {
	if len(directories) < 2 {
		return directories
	}
	sorted := slices.Clone(directories)
	slices.SortFunc(sorted, func(a, b protocol.DirectoryID) int {
		return cmp.Or(
			cmp.Compare(int64(binary.BigEndian.Uint64(a[:8])), int64(binary.BigEndian.Uint64(b[:8]))),
			cmp.Compare(int64(binary.BigEndian.Uint64(a[8:])), int64(binary.BigEndian.Uint64(b[8:]))))
	})
	return sorted
}

func (b *Broker) record(version int16) *schema.RegisterBrokerRecord {
	record := schema.NewRegisterBrokerRecord()
	record.BrokerID, record.BrokerEpoch, record.IncarnationID = b.ID, b.Epoch, b.IncarnationID
	record.Rack, record.Fenced = b.Rack, b.Fenced
	record.UnknownTags = b.UnknownTags
	for _, e := range b.Endpoints {
		record.EndPoints = append(record.EndPoints, schema.BrokerEndpoint(e))
	}
	for _, f := range b.Features {
		record.Features = append(record.Features, schema.BrokerFeature{
			Name: f.Name, MinSupportedVersion: f.Min, MaxSupportedVersion: f.Max, UnknownTags: f.UnknownTags,
		})
	}
	// What an older version has no place for is left out, as Kafka does
	// when a cluster is downgraded and the snapshot is written again.
	if version >= 1 {
		record.InControlledShutdown = b.InControlledShutdown
	}
	if version >= 2 {
		record.IsMigratingZkBroker = b.IsMigratingZK
	}
	if version >= 3 {
		record.LogDirs = b.LogDirs
	}
	if version >= 4 {
		record.CordonedLogDirs = b.CordonedLogDirs
	}
	return record
}

func newController(record *schema.RegisterControllerRecord) *Controller {
	controller := &Controller{
		ID:               record.ControllerID,
		IncarnationID:    record.IncarnationID,
		ZkMigrationReady: record.ZkMigrationReady,
		UnknownTags:      record.UnknownTags,
	}
	for _, e := range record.EndPoints {
		controller.Endpoints = append(controller.Endpoints, Endpoint(e))
	}
	for _, f := range record.Features {
		controller.Features = append(controller.Features, SupportedRange{f.Name, f.MinSupportedVersion, f.MaxSupportedVersion, f.UnknownTags})
	}
	return controller
}

func (c *Controller) record() *schema.RegisterControllerRecord {
	record := schema.NewRegisterControllerRecord()
	record.ControllerID, record.IncarnationID = c.ID, c.IncarnationID
	record.ZkMigrationReady, record.UnknownTags = c.ZkMigrationReady, c.UnknownTags
	for _, e := range c.Endpoints {
		record.EndPoints = append(record.EndPoints, schema.ControllerEndpoint(e))
	}
	for _, f := range c.Features {
		record.Features = append(record.Features, schema.ControllerFeature{
			Name: f.Name, MinSupportedVersion: f.Min, MaxSupportedVersion: f.Max, UnknownTags: f.UnknownTags,
		})
	}
	return record
}
