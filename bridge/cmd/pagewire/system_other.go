//go:build !unix

package main

import (
	"os"
	"os/exec"

	"github.com/spf13/cobra"
)

// replaceBy runs another program and waits until it ends.
func replaceBy(cmd *cobra.Command, program string, args []string) error {
	run := exec.CommandContext(cmd.Context(), program, args...)
	run.Stdin, run.Stdout, run.Stderr = os.Stdin, os.Stdout, os.Stderr
	return run.Run()
}

func pollable(f *os.File, _ ...*os.File) *os.File { return f }
