//go:build !unix

package main

import (
	"io/fs"
	"os"
	"os/exec"

	"github.com/spf13/cobra"
)

// These systems have no numeric owners of files, and cannot lock directories.
type owner struct{ uid, gid int }

func ownerOf(fs.FileInfo) owner { return owner{-1, -1} }

func tryLock(*os.File) bool { return true }

// replaceBy runs another program and waits until it ends.
func replaceBy(cmd *cobra.Command, program string, args []string) error {
	run := exec.CommandContext(cmd.Context(), program, args...)
	run.Stdin, run.Stdout, run.Stderr = os.Stdin, os.Stdout, os.Stderr
	return run.Run()
}

func pollable(f *os.File, _ ...*os.File) *os.File { return f }
