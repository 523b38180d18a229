package simcluster

import (
	"path/filepath"
	"testing"

	"ottla/cmd/ottla/internal/mutant"
)

// mutants are bugs of replication that seeds must find, or the stories of storage/partition (package mutant).
var mutants = []mutant.Mutant{
	{ // KAFKA-1211, KIP-101
		Name: "a follower truncates to its high watermark", File: "storage/replica/follower.go",
		Edits: []mutant.Edit{{"view.LatestEpoch == protocol.NoLeaderEpoch && view.LogEndOffset > highWatermark", "view.LogEndOffset > highWatermark"}},
	},
	{ // KAFKA-6361, KIP-279
		Name: "an epoch that the leader does not know is not cut", File: "storage/replica/read.go",
		Edits: []mutant.Edit{{"if epoch < part.LastFetchedEpoch || end < part.Offset {", "if end < part.Offset {"}},
	},
	{ // KAFKA-6361, KIP-279
		Name: "one truncation is thought to do", File: "storage/partition/follower.go",
		Edits: []mutant.Edit{{"		return min(common.End, p.ends.End)\n	}\n	return min(common.End, leader.End, p.ends.End)", "		return min(leader.End, p.ends.End)\n	}\n	return min(leader.End, p.ends.End)"}},
	},
	{ // KAFKA-10706
		Name: "an epoch without batches stays when the log is cut to its end", File: "storage/log/truncate.go",
		Edits: []mutant.Edit{{"		return l.cutEpochs(l.end)\n", "		return nil\n"}},
	},
	{ // KAFKA-7415
		Name: "a new leader's epoch is not noted", File: "storage/replica/replica.go",
		Edits: []mutant.Edit{{"	if r.log().LatestEpoch() < epoch {\n", "	if r.log().LatestEpoch() < epoch && false {\n"}},
	},
	{ // KAFKA-7897
		Name: "a follower notes no epochs of what it copies", File: "storage/log/append.go",
		Edits: []mutant.Edit{
			{"	if err := a.enterEpoch(b); err != nil {\n", "	if err := a.enterEpoch(b); e.Origin != OriginFollower && err != nil || e.Origin == OriginFollower && a.noteNothing() {\n"},
			{"func (a *appender) checkSize(", "func (a *appender) noteNothing() bool {\n	a.epochs = a.epochs[:min(len(a.epochs), 1)]\n	return false\n}\n\nfunc (a *appender) checkSize("},
		},
	},
	{ // KAFKA-14139, KIP-903
		Name: "a wish does not tell which registration fetched", File: "storage/partition/isr.go",
		Edits: []mutant.Edit{{"			members[i].BrokerEpoch = f.brokerEpoch\n", "			_ = f\n"}},
	},
	{ // KAFKA-15021
		Name: "the high watermark waits for who may not join", File: "storage/partition/leader.go", Scripts: true,
		Edits: []mutant.Edit{{"return p.caughtUp(f, now) && eligible(f, brokers)", "_ = eligible(f, brokers)\n	return p.caughtUp(f, now)"}},
	},
	{ // KAFKA-12367
		Name: "the partition epoch of a change is not noted", File: "storage/partition/leader.go",
		Edits: []mutant.Edit{{"	p.takeFollowers(now, state, forget, newEpoch)\n	p.publish(", "	p.takeFollowers(now, state, forget, newEpoch)\n	if !newEpoch {\n		state.PartitionEpoch = p.view.PartitionEpoch\n	}\n	p.publish("}},
	},
	{ // KIP-966, KAFKA-18635: a rule of the controller, here of the model of it
		Name: "who starts again after a power cut stays eligible", File: "cmd/ottla/internal/simcluster/controller.go",
		Edits: []mutant.Edit{{"			c.fenceIn(next, tp, id, !clean)\n", "			c.fenceIn(next, tp, id, false)\n"}},
	},
	{ // as KAFKA-10527, of a partition; the same
		Name: "who starts again leads on in the same epoch", File: "cmd/ottla/internal/simcluster/controller.go",
		Edits: []mutant.Edit{{"			c.fenceIn(next, tp, id, !clean)\n", "			_, _ = clean, tp\n"}},
	},
	{ // redpanda#5435
		Name: "an epoch ends where the high watermark is", File: "storage/replica/offsets.go",
		Edits: []mutant.Edit{{"	return known, end, nil\n", "	return known, min(end, protocol.Offset(r.highWatermark.Load())), nil\n"}},
	},
	{ // redpanda#14794
		Name: "consumers read what is not committed", File: "storage/replica/read.go",
		Edits: []mutant.Edit{{"		p.bound = min(highWatermark, view.LogEndOffset)\n", "		p.bound = view.LogEndOffset\n"}},
	},
	{
		Name: "a wish is forgotten when the metadata tells what is known", File: "storage/partition/leader.go",
		Edits: []mutant.Edit{{"	if newEpoch || state.PartitionEpoch > p.view.PartitionEpoch {\n", "	{\n"}},
	},
	{ // the simulation found it in seed 658; Apache Kafka 4.4.0 does so (Replica.resetReplicaState)
		Name: "a leader that has missed another's epoch believes what followers said before", File: "storage/partition/leader.go", Scripts: true,
		Edits: []mutant.Edit{{"forget := newLeader || state.LeaderEpoch > p.view.LeaderEpoch+1", "forget := newLeader"}},
	},
	{
		Name: "the high watermark does not wait for who is about to be let in", File: "storage/partition/leader.go",
		Edits: []mutant.Edit{{"(slices.Contains(p.view.MaximalISR, f.id) || p.aboutToJoin(f, now, brokers))", "slices.Contains(p.view.ISR, f.id)"}},
	},
	{
		Name: "a member that lags does not count before the controller has agreed", File: "storage/partition/isr.go",
		Edits: []mutant.Edit{{"	return Effects{ISR: true, Alter: p.propose(rest)}\n", "	view := *p.view\n	alter := p.propose(rest)\n	view.ISR = rest\n	p.publish(view)\n	return Effects{ISR: true, Alter: alter}\n"}},
	},
	{
		Name: "a replica joins before it has what earlier leaders wrote", File: "storage/partition/isr.go",
		Edits: []mutant.Edit{{"	if f.logEnd < p.highWatermark || f.logEnd < p.view.EpochStart {\n", "	if f.logEnd < p.highWatermark/2 {\n"}},
	},
	{
		Name: "too few in-sync replicas do", File: "storage/partition/leader.go",
		Edits: []mutant.Edit{{"func (p *Partition) underMinISR() bool { return len(p.view.ISR) < p.view.MinISR }", "func (p *Partition) underMinISR() bool { return false }"}},
	},
	{
		Name: "a follower does not flush what it acknowledges", File: "storage/replica/follower.go",
		Edits: []mutant.Edit{{"	return r.log().Flush(now)\n", "	return nil\n"}},
	},
	{
		Name: "a leader does not look at the epoch of a fetch", File: "storage/partition/state.go", Scripts: true,
		Edits: []mutant.Edit{{"	case current == protocol.NoLeaderEpoch || current == v.LeaderEpoch:\n", "	case current < v.LeaderEpoch || current == v.LeaderEpoch:\n"}},
	},
	{
		Name: "a follower does not tell its last epoch", File: "storage/fetcher/session.go",
		Edits: []mutant.Edit{{"int64(p.asked.offset), int32(p.asked.lastEpoch)", "int64(p.asked.offset), -1"}},
	},
}

// TestMutantsFit: the passages of all mutants are where they are thought to be. Whoever moves one takes the mutant along; TestMutants
// (build tag mutants) tells whether it is still found.
func TestMutantsFit(t *testing.T) {
	mutant.Fit(t, filepath.Join("..", "..", "..", ".."), mutants)
}
