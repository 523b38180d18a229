package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"ottla/cmd/ottla/internal/offline"
	"ottla/storage/vfs"
)

func dumpCommand() *cobra.Command {
	var options offline.DumpOptions
	command := &cobra.Command{
		Use:   "dump FILE…",
		Short: "Print files of a log directory, and say what is damaged in them",
		Args:  arguments(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, files []string) error {
			var failures []error
			for _, file := range files {
				if len(files) > 1 {
					fmt.Fprintf(cmd.OutOrStdout(), "==> %s <==\n", file)
				}
				failures = append(failures, offline.Dump(cmd.OutOrStdout(), vfs.OS(), file, options))
			}
			return errors.Join(failures...)
		},
	}
	command.Flags().BoolVar(&options.Deep, "deep", false, "print the records of batches too")
	return command
}
