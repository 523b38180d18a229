package main

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"ottla/cmd/ottla/internal/check"
	"ottla/storage/vfs"
)

// progressEvery is how often a check that takes long says how far it is.
const progressEvery = 2 * time.Second

func checkCommand() *cobra.Command {
	var asJSON, notes bool
	var limit int
	command := &cobra.Command{
		Use:   "check DIR…",
		Short: "Check every file of log directories, and say what is damaged",
		Long: "Check every file of the log directories of a node of Apache Kafka or Ottla: what each says by itself, and whether they say the\n" +
			"same. Nothing is changed, and no lock is taken, so a server may have them in use (what it writes meanwhile may look\n" +
			"unfinished). Name all directories of a node, or some of what is compared is not there.\n\n" +
			"A fault is what no server leaves. What Apache Kafka and Ottla leave in order, and what a crash may leave where nothing was\n" +
			"durable yet, is a note; --notes shows them.\n\n" +
			"The exit status is 0 if no fault was found, 1 if one was, and 2 if a directory cannot be read.",
		Args: arguments(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, dirs []string) error {
			report, err := check.Run(vfs.OS(), dirs, check.Options{MaxDecompressed: limit, Progress: progressTo(cmd.ErrOrStderr(), time.Now)})
			if err != nil {
				return usageError{err}
			}
			if asJSON {
				err = report.JSON(cmd.OutOrStdout())
			} else {
				err = report.Print(cmd.OutOrStdout(), notes)
			}
			if err == nil && report.FaultCount > 0 {
				err = errFaults
			}
			return err
		},
	}
	command.Flags().BoolVar(&asJSON, "json", false, "print the report as one JSON object")
	command.Flags().BoolVar(&notes, "notes", false, "print notes too")
	command.Flags().IntVar(&limit, "max-decompressed", 0, "bytes that one batch may expand to (default 256 MiB); larger ones are noted as not read")
	return command
}

var errFaults = errors.New("faults were found")

// progressTo writes how far a check is, if it takes longer than a moment.
func progressTo(w io.Writer, now func() time.Time) func(check.Totals, string) {
	last := now()
	return func(done check.Totals, file string) {
		if at := now(); at.Sub(last) >= progressEvery {
			last = at
			fmt.Fprintf(w, "%d partitions, %d batches, %d MB; %s\n", done.Partitions, done.Batches, done.Bytes>>20, file)
		}
	}
}
