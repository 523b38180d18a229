package simcluster

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// mutant is a bug that is planted for a moment, as package sim plants its own: a passage of a source file is replaced in a copy,
// which the compiler takes by -overlay.
type mutant struct {
	name    string
	file    string // from the root of the module
	edits   []edit
	scripts bool // it only makes things slow: the stories of storage/partition must find it
}

// edit replaces a passage that occurs once.
type edit struct{ old, new string }

var mutants = []mutant{
	{ // KAFKA-1211, KIP-101
		name: "a follower truncates to its high watermark", file: "storage/replica/follower.go",
		edits: []edit{{"view.LatestEpoch == protocol.NoLeaderEpoch && view.LogEndOffset > r.core", "view.LogEndOffset > r.core"}},
	},
	{ // KAFKA-6361, KIP-279
		name: "an epoch that the leader does not know is not cut", file: "storage/replica/read.go",
		edits: []edit{{"if epoch < part.LastFetchedEpoch || end < part.Offset {", "if end < part.Offset {"}},
	},
	{ // KAFKA-6361, KIP-279
		name: "one truncation is thought to do", file: "storage/partition/follower.go",
		edits: []edit{{"		return min(common.End, p.ends.End)\n	}\n	return min(common.End, leader.End, p.ends.End)", "		return min(leader.End, p.ends.End)\n	}\n	return min(leader.End, p.ends.End)"}},
	},
	{ // KAFKA-10706
		name: "an epoch without batches stays when the log is cut to its end", file: "storage/log/truncate.go",
		edits: []edit{{"		return l.cutEpochs(l.end)\n", "		return nil\n"}},
	},
	{ // KAFKA-7415
		name: "a new leader's epoch is not noted", file: "storage/replica/replica.go",
		edits: []edit{{"	if r.log().LatestEpoch() < epoch {\n", "	if r.log().LatestEpoch() < epoch && false {\n"}},
	},
	{ // KAFKA-7897
		name: "a follower notes no epochs of what it copies", file: "storage/log/append.go",
		edits: []edit{
			{"	if err := a.enterEpoch(b); err != nil {\n", "	if err := a.enterEpoch(b); e.Origin != OriginFollower && err != nil || e.Origin == OriginFollower && a.noteNothing() {\n"},
			{"func (a *appender) checkSize(", "func (a *appender) noteNothing() bool {\n	a.epochs = a.epochs[:min(len(a.epochs), 1)]\n	return false\n}\n\nfunc (a *appender) checkSize("},
		},
	},
	{ // KAFKA-14139, KIP-903
		name: "a wish does not tell which registration fetched", file: "storage/partition/isr.go",
		edits: []edit{{"			members[i].BrokerEpoch = f.brokerEpoch\n", "			_ = f\n"}},
	},
	{ // KAFKA-15021
		name: "the high watermark waits for who may not join", file: "storage/partition/leader.go", scripts: true,
		edits: []edit{{"return p.caughtUp(f, now) && eligible(f, brokers)", "_ = eligible(f, brokers)\n	return p.caughtUp(f, now)"}},
	},
	{ // KAFKA-12367
		name: "the partition epoch of a change is not noted", file: "storage/partition/leader.go",
		edits: []edit{{"	p.takeFollowers(now, state, forget, newEpoch)\n	p.publish(", "	p.takeFollowers(now, state, forget, newEpoch)\n	if !newEpoch {\n		state.PartitionEpoch = p.view.PartitionEpoch\n	}\n	p.publish("}},
	},
	{ // KIP-966, KAFKA-18635: a rule of the controller, here of the model of it
		name: "who starts again after a power cut stays eligible", file: "cmd/ottla/internal/simcluster/controller.go",
		edits: []edit{{"			c.fenceIn(next, tp, id, !clean)\n", "			c.fenceIn(next, tp, id, false)\n"}},
	},
	{ // as KAFKA-10527, of a partition; the same
		name: "who starts again leads on in the same epoch", file: "cmd/ottla/internal/simcluster/controller.go",
		edits: []edit{{"			c.fenceIn(next, tp, id, !clean)\n", "			_, _ = clean, tp\n"}},
	},
	{ // redpanda#5435
		name: "an epoch ends where the high watermark is", file: "storage/replica/offsets.go",
		edits: []edit{{"	return known, end, nil\n", "	return known, min(end, protocol.Offset(r.highWatermark.Load())), nil\n"}},
	},
	{ // redpanda#14794
		name: "consumers read what is not committed", file: "storage/replica/read.go",
		edits: []edit{{"		p.bound = min(highWatermark, view.LogEndOffset)\n", "		p.bound = view.LogEndOffset\n"}},
	},
	{
		name: "a wish is forgotten when the metadata tells what is known", file: "storage/partition/leader.go",
		edits: []edit{{"	if newEpoch || state.PartitionEpoch > p.view.PartitionEpoch {\n", "	{\n"}},
	},
	{ // the simulation found it in seed 658; Apache Kafka 4.4.0 does so (Replica.resetReplicaState)
		name: "a leader that has missed another's epoch believes what followers said before", file: "storage/partition/leader.go", scripts: true,
		edits: []edit{{"forget := newLeader || state.LeaderEpoch > p.view.LeaderEpoch+1", "forget := newLeader"}},
	},
	{
		name: "the high watermark does not wait for who is about to be let in", file: "storage/partition/leader.go",
		edits: []edit{{"(slices.Contains(p.view.MaximalISR, f.id) || p.aboutToJoin(f, now, brokers))", "slices.Contains(p.view.ISR, f.id)"}},
	},
	{
		name: "a member that lags does not count before the controller has agreed", file: "storage/partition/isr.go",
		edits: []edit{{"	return Effects{ISR: true, Alter: p.propose(rest)}\n", "	view := *p.view\n	alter := p.propose(rest)\n	view.ISR = rest\n	p.publish(view)\n	return Effects{ISR: true, Alter: alter}\n"}},
	},
	{
		name: "a replica joins before it has what earlier leaders wrote", file: "storage/partition/isr.go",
		edits: []edit{{"	if f.logEnd < p.highWatermark || f.logEnd < p.view.EpochStart {\n", "	if f.logEnd < p.highWatermark/2 {\n"}},
	},
	{
		name: "too few in-sync replicas do", file: "storage/partition/leader.go",
		edits: []edit{{"func (p *Partition) underMinISR() bool { return len(p.view.ISR) < p.view.MinISR }", "func (p *Partition) underMinISR() bool { return false }"}},
	},
	{
		name: "a follower does not flush what it acknowledges", file: "storage/replica/follower.go",
		edits: []edit{{"	return r.log().Flush(now)\n", "	return nil\n"}},
	},
	{
		name: "a leader does not look at the epoch of a fetch", file: "storage/partition/state.go", scripts: true,
		edits: []edit{{"	case current == protocol.NoLeaderEpoch || current == v.LeaderEpoch:\n", "	case current < v.LeaderEpoch || current == v.LeaderEpoch:\n"}},
	},
	{
		name: "a follower does not tell its last epoch", file: "storage/fetcher/session.go",
		edits: []edit{{"int64(p.asked.offset), int32(p.asked.lastEpoch)", "int64(p.asked.offset), -1"}},
	},
}

// source gives the file with the bug in it.
func (m *mutant) source(root string) (string, error) {
	source, err := os.ReadFile(filepath.Join(root, m.file))
	if err != nil {
		return "", err
	}
	text := string(source)
	for _, e := range m.edits {
		if strings.Count(text, e.old) != 1 {
			return "", fmt.Errorf("%s does not hold this passage once: %s", m.file, e.old)
		}
		text = strings.Replace(text, e.old, e.new, 1)
	}
	return text, nil
}

// TestMutantsFit: the passages of all mutants are where they are thought to be. TestMutants (build tag mutants) tells whether each is
// found.
func TestMutantsFit(t *testing.T) {
	root := filepath.Join("..", "..", "..", "..")
	for _, m := range mutants {
		if _, err := m.source(root); err != nil {
			t.Errorf("%s: %v", m.name, err)
		}
	}
}
