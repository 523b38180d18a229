package offline

import (
	"fmt"
	"net"
	"strconv"
	"strings"

	"ottla/controller/metadata"
	"ottla/protocol"
	"ottla/protocol/record"
	"ottla/protocol/schema"
)

// Where the first snapshot lies in a metadata directory: at offset 0, epoch 0.
const (
	metadataPartitionDir = protocol.ClusterMetadataTopic + "-0"
	firstSnapshot        = "00000000000000000000-0000000000.checkpoint"
)

// maxKRaftVersion is the highest kraft.version that the first voters support.
const maxKRaftVersion = 1

// snapshot builds the first snapshot as StorageTool of 4.4.0 does: a control batch with the header and, for a
// dynamic quorum, kraft.version and the voters; a batch of metadata records; a control batch with the footer.
func (o *FormatOptions) snapshot(nowMs int64, levels featureLevels, credentials []credential) []byte {
	first := snapshotBatch(0, true)
	appendControl := func(b *record.Builder, key, value []byte) { b.Append(nowMs, key, value, nil) }
	key, value := record.SnapshotHeader{LastContainedLogTimestamp: nowMs}.Encode()
	appendControl(first, key, value)
	if levels.kraft > 0 {
		key, value = record.KRaftVersion{KRaftVersion: levels.kraft}.Encode()
		appendControl(first, key, value)
		if voters := o.voters(); len(voters) > 0 {
			key, value = record.Voters{Voters: voters}.Encode()
			appendControl(first, key, value)
		}
	}
	middle := snapshotBatch(first.NextOffset(), false)
	for _, r := range bootstrapRecords(levels, credentials) {
		middle.Append(nowMs, nil, schema.EncodeMetadata(r, 0), nil)
	}
	last := snapshotBatch(middle.NextOffset(), true)
	key, value = record.SnapshotFooter{}.Encode()
	appendControl(last, key, value)
	var snapshot []byte
	for _, b := range []*record.Builder{first, middle, last} {
		snapshot = append(snapshot, b.Build(nil)...)
	}
	return snapshot
}

func snapshotBatch(base protocol.Offset, control bool) *record.Builder {
	options := record.PlainOptions()
	options.BaseOffset, options.Control, options.PartitionLeaderEpoch = base, control, 0
	return record.NewBuilder(options)
}

func (o *FormatOptions) voters() []record.Voter {
	var voters []record.Voter
	if o.Quorum != Standalone && o.Quorum != InitialControllers {
		return nil
	}
	for _, v := range o.Voters {
		voters = append(voters, record.Voter{
			ID: v.ID, DirectoryID: v.DirectoryID, MaxKRaftVersion: maxKRaftVersion,
			Endpoints: []record.VoterEndpoint{{Name: o.ListenerName, Host: v.Host, Port: v.Port}},
		})
	}
	return voters
}

// bootstrapRecords are the records with which a cluster begins. All are written in version 0.
func bootstrapRecords(levels featureLevels, credentials []credential) []schema.MetadataRecord {
	features := append([]Feature{{metadata.MetadataVersionFeature, int16(levels.version)}}, levels.others...)
	var records []schema.MetadataRecord
	for _, f := range features {
		r := schema.NewFeatureLevelRecord()
		r.Name, r.FeatureLevel = f.Name, f.Level
		records = append(records, r)
	}
	for _, c := range credentials {
		records = append(records, c.record())
	}
	return records
}

// ParseVoters reads the value of --initial-controllers: id@host:port:directory, comma separated.
func ParseVoters(text string) ([]Voter, error) {
	var voters []Voter
	for _, part := range strings.Split(text, ",") {
		v, err := parseVoter(strings.TrimSpace(part))
		if err != nil {
			return nil, fmt.Errorf("%q is not of the form id@host:port:directory: %w", part, err)
		}
		voters = append(voters, v)
	}
	return voters, nil
}

func parseVoter(text string) (v Voter, err error) {
	idText, rest, ok := strings.Cut(text, "@")
	if !ok {
		return v, fmt.Errorf("there is no @")
	}
	id, err := strconv.ParseInt(idText, 10, 32)
	if err != nil || id < 0 {
		return v, fmt.Errorf("%q is no node id", idText)
	}
	cut := strings.LastIndexByte(rest, ':')
	if cut < 0 {
		return v, fmt.Errorf("there is no directory id")
	}
	directory, err := protocol.ParseUUID(rest[cut+1:])
	if err != nil {
		return v, err
	}
	host, portText, err := net.SplitHostPort(rest[:cut])
	if err != nil {
		return v, err
	}
	port, err := strconv.ParseUint(portText, 10, 16)
	if err != nil || host == "" {
		return v, fmt.Errorf("%q is no host and port", rest[:cut])
	}
	return Voter{protocol.NodeID(id), directory, host, uint16(port)}, nil
}
