package api

import (
	"log/slog"
	"strconv"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/controller/config"
	"ottla/protocol"
)

// rootLogger is the one logger there is, by Kafka's name for it.
const rootLogger = "root"

// logLevel is one of the levels of Kafka, in the order in which it lists them.
type logLevel struct {
	name  string
	level slog.Level
}

var logLevels = []logLevel{
	{"DEBUG", slog.LevelDebug},
	{"ERROR", slog.LevelError},
	{"FATAL", slog.LevelError + 4},
	{"INFO", slog.LevelInfo},
	{"TRACE", slog.LevelDebug - 4},
	{"WARN", slog.LevelWarn},
}

// alterLoggers sets what this process logs, until it ends (KIP-412).
func (c *call) alterLoggers(a *alteration) error {
	if !c.mayCluster(kmsg.ACLOperationAlterConfigs) {
		return protocol.ClusterAuthorizationFailed.Err()
	}
	id, err := strconv.ParseInt(a.name, 10, 32)
	if err != nil {
		return protocol.Errorf(protocol.InvalidRequest, "Node id must be an integer, but it is: %s", a.name)
	}
	if protocol.NodeID(id) != c.ID {
		return protocol.Errorf(protocol.InvalidRequest, "Unexpected node id. Expected %d, but received %s", c.ID, a.name)
	}
	for _, change := range a.changes {
		if err := checkLogger(change); err != nil {
			return err
		}
	}
	for _, change := range a.changes {
		for _, l := range logLevels {
			if l.name == change.Value && !a.dry && c.Level != nil {
				c.Level.Set(l.level)
			}
		}
	}
	return nil
}

// checkLogger judges one change, in the order and the words of Apache Kafka's
// RuntimeLoggerManager.
func checkLogger(change config.Alteration) error {
	missing := protocol.Errorf(protocol.InvalidConfig, "Logger %s does not exist!", change.Name)
	switch change.Kind {
	case config.AlterSet:
		if change.Name != rootLogger {
			return missing
		}
		for _, l := range logLevels {
			if l.name == change.Value {
				return nil
			}
		}
		return protocol.Errorf(protocol.InvalidConfig,
			"Cannot set the log level of %s to %s as it is not a supported log level. Valid log levels are DEBUG, ERROR, FATAL, INFO, TRACE, WARN", change.Name, change.Value)
	case config.AlterDelete:
		if change.Name == rootLogger {
			return protocol.Errorf(protocol.InvalidRequest, "Removing the log level of the root logger is not allowed")
		}
		return missing
	case config.AlterAppend, config.AlterSubtract:
		return protocol.Errorf(protocol.InvalidRequest, "%s operation is not allowed for the BROKER_LOGGER resource", change.Kind)
	}
	return protocol.Errorf(protocol.InvalidRequest, "Unknown operation type %d is not allowed for the BROKER_LOGGER resource", change.Kind)
}

// describeLoggers gives the level of the one logger.
func (c *call) describeLoggers(names []string) []config.Entry {
	if c.Level == nil {
		return nil
	}
	named := len(names) == 0
	for _, name := range names {
		named = named || name == rootLogger
	}
	if !named {
		return nil
	}
	level := c.Level.Level()
	shown := level.String() // between two of Kafka's levels, as no one sets it
	for _, l := range logLevels {
		if l.level == level {
			shown = l.name
		}
	}
	return []config.Entry{{Name: rootLogger, Value: &shown, Source: config.SourceDynamicBrokerLogger}}
}
