//go:build !unix

package main

import (
	"os"
	"os/exec"

	"github.com/spf13/cobra"
)

// replaceBy runs another program and waits for its end.
func replaceBy(cmd *cobra.Command, program string, args []string) error {
	run := exec.CommandContext(cmd.Context(), program, args...)
	run.Stdin, run.Stdout, run.Stderr = os.Stdin, os.Stdout, os.Stderr
	return run.Run()
}
