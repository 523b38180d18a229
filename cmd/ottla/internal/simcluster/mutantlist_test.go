package simcluster

import (
	"path/filepath"
	"testing"

	"ottla/cmd/ottla/internal/mutant"
)

// bugs are those of other systems that must be found if they are made here, by their numbers in the table of known bugs that the tests
// were made from; each has one mutant at least, which says what finds it.
var bugs = map[int]string{
	1:  "KAFKA-1211, KIP-101: a follower truncates to its own high watermark",
	2:  "KAFKA-6361, KIP-279: logs diverge after two fast failovers",
	3:  "KAFKA-10706: the epochs are not cut when the log is cut to an epoch's end",
	4:  "KAFKA-7415: the start of an epoch is not kept when a leader begins it",
	5:  "KAFKA-7897, KAFKA-7959: an epoch cache with holes",
	7:  "KAFKA-14139, KIP-903: a replica joins that came back with an empty disk",
	8:  "KIP-966, KAFKA-18635: the last replica standing stops uncleanly and truncates all",
	9:  "KAFKA-15021: the high watermark waits for a replica that may not join",
	11: "KAFKA-12367: the partition epoch is not taken over",
	13: "KAFKA-10527: a voter leads on in the same epoch after a restart",
	15: "redpanda#5435: OffsetForLeaderEpoch answers less than was consumed",
	21: "redpanda#14794: consumers see what a majority does not have",
}

// mutants are bugs of replication that seeds must find, or the tests that they name (package mutant).
var mutants = []mutant.Mutant{
	{ // KAFKA-1211, KIP-101
		Name: "a follower truncates to its high watermark", Bug: 1, File: "storage/replica/follower.go",
		Edits: []mutant.Edit{{"view.LatestEpoch == protocol.NoLeaderEpoch && view.LogEndOffset > highWatermark", "view.LogEndOffset > highWatermark"}},
	},
	{ // KAFKA-6361, KIP-279
		Name: "an epoch that the leader does not know is not cut", Bug: 2, File: "storage/replica/read.go",
		Edits: []mutant.Edit{{"if epoch < part.LastFetchedEpoch || end < part.Offset {", "if end < part.Offset {"}},
	},
	{ // KAFKA-6361, KIP-279
		Name: "one truncation is thought to do", Bug: 2, File: "storage/partition/follower.go",
		Edits: []mutant.Edit{{"		return min(common.End, p.ends.End)\n	}\n	return min(common.End, leader.End, p.ends.End)", "		return min(leader.End, p.ends.End)\n	}\n	return min(leader.End, p.ends.End)"}},
	},
	{ // KAFKA-10706
		Name: "an epoch without batches stays when the log is cut to its end", Bug: 3, File: "storage/log/truncate.go",
		Edits: []mutant.Edit{{"		return l.cutEpochs(l.end)\n", "		return nil\n"}},
	},
	{ // KAFKA-7415
		Name: "a new leader's epoch is not noted", Bug: 4, File: "storage/replica/replica.go",
		Edits: []mutant.Edit{{"	if r.log().LatestEpoch() < epoch {\n", "	if r.log().LatestEpoch() < epoch && false {\n"}},
	},
	{ // KAFKA-7897
		Name: "a follower notes no epochs of what it copies", Bug: 5, File: "storage/log/append.go",
		Edits: []mutant.Edit{
			{"	if err := a.enterEpoch(b); err != nil {\n", "	if err := a.enterEpoch(b); e.Origin != OriginFollower && err != nil || e.Origin == OriginFollower && a.noteNothing() {\n"},
			{"func (a *appender) checkSize(", "func (a *appender) noteNothing() bool {\n	a.epochs = a.epochs[:min(len(a.epochs), 1)]\n	return false\n}\n\nfunc (a *appender) checkSize("},
		},
	},
	{ // KAFKA-14139, KIP-903
		Name: "a wish does not tell which registration fetched", Bug: 7, File: "storage/partition/isr.go",
		Edits: []mutant.Edit{{"			members[i].BrokerEpoch = f.brokerEpoch\n", "			_ = f\n"}},
	},
	{ // KAFKA-15021
		Name: "the high watermark waits for who may not join", Bug: 9, File: "storage/partition/leader.go", Tests: "TestScripts$", Package: "./storage/partition",
		Edits: []mutant.Edit{{"return p.caughtUp(f, now) && eligible(f, brokers)", "_ = eligible(f, brokers)\n	return p.caughtUp(f, now)"}},
	},
	{ // KAFKA-12367
		Name: "the partition epoch of a change is not noted", Bug: 11, File: "storage/partition/leader.go",
		Edits: []mutant.Edit{{"	p.takeFollowers(now, state, forget, newEpoch)\n	p.publish(", "	p.takeFollowers(now, state, forget, newEpoch)\n	if !newEpoch {\n		state.PartitionEpoch = p.view.PartitionEpoch\n	}\n	p.publish("}},
	},
	{ // KIP-966, KAFKA-18635: a rule of the controller, here of the model of it
		Name: "who starts again after a power cut stays eligible", Bug: 8, File: "cmd/ottla/internal/simcluster/controller.go",
		Edits: []mutant.Edit{{"			c.fenceIn(next, tp, id, !clean)\n", "			c.fenceIn(next, tp, id, false)\n"}},
	},
	{ // as KAFKA-10527, of a partition; the same
		Name: "who starts again leads on in the same epoch", Bug: 13, File: "cmd/ottla/internal/simcluster/controller.go",
		Edits: []mutant.Edit{{"			c.fenceIn(next, tp, id, !clean)\n", "			_, _ = clean, tp\n"}},
	},
	{ // the same in the controller's own core
		Name: "a registration is taken for one after a clean stop", Bug: 8, File: "controller/cluster/registration.go",
		Tests: "TestSeeds$", Package: "./cmd/ottla/internal/simbrokers",
		Edits: []mutant.Edit{{"		records = c.cleanUp(id, clean)\n", "		records = c.cleanUp(id, clean || true)\n"}},
	},
	{ // and in the broker
		Name: "the marker of a clean stop outlives the start", Bug: 8, File: "storage/store/prepare.go",
		Tests: "TestSeeds$", Package: "./cmd/ottla/internal/simbrokers",
		Edits: []mutant.Edit{{"	if d.marker.Present {\n		if err := p.o.FS.Remove", "	if d.marker.Present && !d.marker.Clean {\n		if err := p.o.FS.Remove"}},
	},
	{ // KAFKA-10527 itself
		Name: "a voter that starts again leads on in the same epoch", Bug: 13, File: "controller/raft/core.go",
		Tests: "Crash|Torn", Package: "./controller/quorum",
		Edits: []mutant.Edit{{"		Epoch: c.state.Epoch + 1, Leader: c.local.ID,", "		Epoch: max(c.state.Epoch, 1), Leader: c.local.ID,"}},
	},
	{ // redpanda#5435
		Name: "an epoch ends where the high watermark is", Bug: 15, File: "storage/replica/offsets.go",
		Edits: []mutant.Edit{{"	return known, end, nil\n", "	return known, min(end, protocol.Offset(r.highWatermark.Load())), nil\n"}},
	},
	{ // redpanda#14794
		Name: "consumers read what is not committed", Bug: 21, File: "storage/replica/read.go",
		Edits: []mutant.Edit{{"		p.bound = min(highWatermark, view.LogEndOffset)\n", "		p.bound = view.LogEndOffset\n"}},
	},
	{
		Name: "a wish is forgotten when the metadata tells what is known", File: "storage/partition/leader.go",
		Edits: []mutant.Edit{{"	if newEpoch || state.PartitionEpoch > p.view.PartitionEpoch {\n", "	{\n"}},
	},
	{ // the simulation found it in seed 658; Apache Kafka 4.4.0 does so (Replica.resetReplicaState)
		Name: "a leader that has missed another's epoch believes what followers said before", File: "storage/partition/leader.go", Tests: "TestScripts$", Package: "./storage/partition",
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
		Name: "a leader does not look at the epoch of a fetch", File: "storage/partition/state.go", Tests: "TestScripts$", Package: "./storage/partition",
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

// TestEveryBugHasAMutant: whoever takes a mutant away leaves another one of the same bug.
func TestEveryBugHasAMutant(t *testing.T) {
	planted := map[int]bool{}
	for _, m := range mutants {
		if planted[m.Bug] = true; m.Bug != 0 && bugs[m.Bug] == "" {
			t.Errorf("%q is of bug %d, which is not in the list", m.Name, m.Bug)
		}
	}
	for number, bug := range bugs {
		if !planted[number] {
			t.Errorf("bug %d has no mutant: %s", number, bug)
		}
	}
}
