//go:build unix

package main

import (
	"os"
	"syscall"

	"github.com/spf13/cobra"
)

// replaceBy makes this process another program: what is sent to it, such as SIGTERM, that program gets.
func replaceBy(_ *cobra.Command, program string, args []string) error {
	return syscall.Exec(program, append([]string{program}, args...), os.Environ())
}
