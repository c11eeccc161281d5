//go:build unix

package main

import (
	"os"
	"syscall"

	"github.com/spf13/cobra"
)

// replaceBy turns this process into another program, which then gets its signals, such as SIGTERM.
func replaceBy(_ *cobra.Command, program string, args []string) error {
	return syscall.Exec(program, append([]string{program}, args...), os.Environ())
}
