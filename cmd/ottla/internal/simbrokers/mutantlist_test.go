package simbrokers

import (
	"path/filepath"
	"testing"

	"ottla/cmd/ottla/internal/mutant"
)

// mutants are bugs about disks that are lost, topics that go and replicas that come and go; seeds must find them (package mutant). Those
// of replication itself are in the list of simcluster.
var mutants = []mutant.Mutant{
	{
		Name: "the files of a replica that goes stay", File: "cmd/ottla/internal/broker/applier.go",
		Edits: []mutant.Edit{{"a.replicas.Remove(now, tp, true)", "a.replicas.Remove(now, tp, false)"}},
	},
	{
		Name: "a start takes the log of a topic before for the one of its name", File: "cmd/ottla/internal/broker/applier.go",
		Edits: []mutant.Edit{{" || !l.TopicID().IsZero() && l.TopicID() != topic.ID {", " {\n			_ = topic"}},
	},
	{
		Name: "a log that lies there is any topic's of its name", File: "storage/replica/manager.go",
		Edits: []mutant.Edit{
			{"	case topicID.IsZero() || known == topicID:\n", "	case topicID.IsZero() || known == topicID || !known.IsZero():\n"},
			{"	if err := m.options.Store.Delete(now, tp); err != nil {\n", "	if err := error(nil); err != nil {\n"},
			{"known != topicID && !known.IsZero() && !topicID.IsZero() {\n			return nil, protocol.Errorf(protocol.InconsistentTopicID, \"%s is here", "known.IsZero() && !topicID.IsZero() && false {\n			return nil, protocol.Errorf(protocol.InconsistentTopicID, \"%s is here"},
		},
	},
	{ // a rule of the controller, here of the model of it
		Name: "a replica goes before the one that is added is in sync", File: "cmd/ottla/internal/simbrokers/isr.go",
		Edits: []mutant.Edit{{"|| missing || len(isr) == 0 {\n		return now.Replicas\n	}\n	change.ISR,", "|| len(rest) == 0 {\n		_ = missing\n		return now.Replicas\n	}\n	isr = rest\n	change.ISR,"}},
	},
}

// TestMutantsFit: the passages of all mutants are where they are thought to be. Whoever moves one takes the mutant along; TestMutants
// (build tag mutants) tells whether it is still found.
func TestMutantsFit(t *testing.T) {
	mutant.Fit(t, filepath.Join("..", "..", "..", ".."), mutants)
}
