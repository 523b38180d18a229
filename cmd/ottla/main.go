// Command ottla is an Apache Kafka broker and controller: ottla serve runs it,
// ottla format, dump, adopt and check work on its directories without it.
//
// This package is the command line and nothing else: it reads settings
// (settings.go), and hands over to cmd/ottla/internal/node and
// cmd/ottla/internal/offline.
//
// Exit status: 0 done, 1 the operation failed, 2 the command line or the
// configuration is wrong.
package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"
)

// version is set by the build.
var version = "unknown"

const (
	exitFailed = 1
	exitUsage  = 2
)

// usageError is a fault of the command line or the configuration.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func main() { os.Exit(run(os.Args[1:])) }

func run(args []string) int {
	root := rootCommand()
	root.SetArgs(args)
	err := root.Execute()
	if err == nil {
		return 0
	}
	fmt.Fprintln(os.Stderr, "ottla:", err)
	return statusOf(err)
}

func statusOf(err error) int {
	var usage usageError
	if errors.As(err, &usage) {
		return exitUsage
	}
	return exitFailed
}

func rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:           "ottla",
		Version:       version,
		Short:         "An Apache Kafka broker and controller in one binary",
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          arguments(cobra.NoArgs), // a command that there is not
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.CompletionOptions.HiddenDefaultCmd = true
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	root.AddCommand(serveCommand(), formatCommand(), dumpCommand(), adoptCommand(), checkCommand(), versionCommand())
	return root
}

// arguments makes a wrong number of arguments a usage error.
func arguments(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return usageError{err}
		}
		return nil
	}
}

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", Args: arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "ottla %s (protocol and files of Apache Kafka 4.4.0)\n", version)
			return err
		},
	}
}
