package main

import (
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"ottla/cmd/ottla/internal/node"
	"ottla/controller/config"
)

func serveCommand() *cobra.Command {
	var overrides []string
	command := &cobra.Command{
		Use:   "serve [server.properties]",
		Short: "Run a broker and controller",
		Long: "Run a broker and controller. Without a file it listens on localhost:9092, keeps its data in ./data, and formats that\n" +
			"directory if it is empty. Settings come from --override, then from the environment (OTTLA_NODE_ID for node.id),\n" +
			"then from the file.",
		Args: arguments(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			path := ""
			if len(args) == 1 {
				path = args[0]
			}
			return serve(cmd, path, overrides)
		},
	}
	command.Flags().StringArrayVar(&overrides, "override", nil, "a property to set, as key=value; may be repeated")
	return command
}

func serve(cmd *cobra.Command, path string, overrides []string) error {
	// From here on a signal is a clean stop, also one that comes before anything is open.
	ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	level := new(slog.LevelVar)
	logger := slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), &slog.HandlerOptions{Level: level}))
	settings, err := brokerConfig(path, overrides, logger)
	if err != nil {
		return err
	}
	defer runtime.KeepAlive(ballast())
	return node.Run(ctx, settings, logger, level)
}

// brokerConfig reads and checks the settings, and says once what of them has no
// effect.
func brokerConfig(path string, overrides []string, logger *slog.Logger) (*config.BrokerConfig, error) {
	properties, err := loadSettings(path, overrides, os.Environ())
	if err != nil {
		return nil, usageError{err}
	}
	settings, report, err := config.Broker(properties)
	if err != nil {
		return nil, usageError{err}
	}
	if len(report.Unknown) > 0 {
		logger.Warn("unknown properties are ignored", "properties", names(report.Unknown))
	}
	if len(report.Ignored) > 0 {
		logger.Warn("these properties have no effect here", "properties", names(report.Ignored))
	}
	for _, warning := range report.Warnings {
		logger.Warn(warning)
	}
	return settings, nil
}

// names leaves the values out: they may be secret.
func names(properties []config.Property) string {
	var all []string
	for _, property := range properties {
		all = append(all, property.Name)
	}
	return strings.Join(all, ", ")
}
