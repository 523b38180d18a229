package shard

import (
	"log/slog"

	"ottla/protocol"
)

// CoordinatorError gives the error of an append or a read as coordinators tell
// it to clients (CoordinatorOperationExceptionHelper of Apache Kafka 4.4.0; the
// transaction coordinator does the same). Errors that are not listed stay.
func CoordinatorError(err error) error {
	code := protocol.CodeOf(err)
	switch code {
	case protocol.UnknownTopicOrPartition, protocol.NotEnoughReplicas, protocol.NotEnoughReplicasAfterAppend, protocol.RequestTimedOut:
		code = protocol.CoordinatorNotAvailable
	case protocol.NotLeaderOrFollower, protocol.KafkaStorageError, protocol.FencedLeaderEpoch, protocol.UnknownLeaderEpoch:
		code = protocol.NotCoordinator
	case protocol.NetworkException:
		code = protocol.CoordinatorLoadInProgress
	case protocol.MessageTooLarge, protocol.RecordListTooLarge, protocol.InvalidFetchSize:
		code = protocol.UnknownServerError
	default:
		return err
	}
	return protocol.Errorf(code, "%v", err)
}

// retriable is CoordinatorError for those who did not cause the failure and
// shall come again.
func retriable(err error) error {
	mapped := CoordinatorError(err)
	if protocol.CodeOf(mapped).Retriable() {
		return mapped
	}
	return protocol.Errorf(protocol.CoordinatorNotAvailable, "%v", err)
}

// severity tells a leadership that moves, which is nobody's fault, from what an
// operator should see.
func severity(err error) slog.Level {
	switch protocol.CodeOf(err) {
	case protocol.NotLeaderOrFollower, protocol.FencedLeaderEpoch, protocol.UnknownLeaderEpoch, protocol.UnknownTopicOrPartition:
		return slog.LevelInfo
	}
	return slog.LevelError
}
