package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/pagewire/pagewire/bridge/access"
	"github.com/pagewire/pagewire/bridge/cmd/internal/cli"
	"github.com/pagewire/pagewire/bridge/cmd/pagewire/clientconfig"
	"github.com/pagewire/pagewire/bridge/cmd/pagewire/nativehost"
	"github.com/pagewire/pagewire/bridge/pages/extension"
)

func extensionCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "extension",
		Short:   "Connect the browser extension to agents",
		Long:    "The browser extension shows agents the pages of every site that you allow.",
		Example: "  pagewire extension install",
		RunE:    func(cmd *cobra.Command, args []string) error { return cmd.Help() },
		Args:    noArguments,
	}
	var dir string
	var force bool
	install := &cobra.Command{
		Use:   "install",
		Short: "Let installed browsers start this program for the extension",
		Long: "Writes a file for each installed Chrome, Chromium, Edge, Brave and Firefox, and\n" +
			"prints its path. Other extensions can't start this program.",
		Example: "  pagewire extension install",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, args []string) error {
			return installHosts(cmd, dir, force)
		},
	}
	install.Flags().BoolVar(&force, "force", false, "replace a file that names another program")
	uninstall := &cobra.Command{
		Use:     "uninstall",
		Short:   "Remove what install wrote",
		Example: "  pagewire extension uninstall",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, args []string) error {
			err := forHosts(cmd, dir,
				func(h nativehost.Place) error { return h.Uninstall(cmd.Context()) })
			if dir != "" || err != nil && !errors.Is(err, nativehost.ErrNoBrowser) {
				return err // other browsers may go on
			}
			return removeSecret(cmd)
		},
	}
	for _, c := range []*cobra.Command{install, uninstall} {
		c.Flags().StringVar(&dir, "user-data-dir", "",
			"for the Chromium with this profile `directory` alone")
		pathsAsJSON(c)
	}
	cmd.AddCommand(install, uninstall)
	return cmd
}

// installHosts makes this program known to browsers.
func installHosts(cmd *cobra.Command, dir string, force bool) error {
	binary, err := os.Executable()
	if err == nil {
		binary, err = filepath.EvalSymlinks(binary)
	}
	if err != nil {
		return fmt.Errorf("find the path of this program: %w", err)
	}
	if err := checkLasts(binary); err != nil {
		return err
	}
	file, err := access.TokenFile()
	if err == nil {
		_, err = extension.MakeSecret(file)
	}
	if err != nil {
		return err
	}
	return forHosts(cmd, dir, func(h nativehost.Place) error {
		return h.Install(cmd.Context(), binary, force)
	})
}

// removeSecret removes the secret. It keeps a file with other content, which is not ours: the
// secret is in the token's directory, and that can be any directory.
func removeSecret(cmd *cobra.Command) error {
	file, err := access.TokenFile()
	if err != nil {
		return err
	}
	secret := extension.SecretFile(file)
	if _, err := os.Lstat(secret); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if _, err := extension.Secret(file); err != nil {
		return err
	}
	return printPath(cmd, secret, os.Remove(secret))
}

// forHosts does something at each place, and prints the files that it has changed.
func forHosts(cmd *cobra.Command, dir string, do func(nativehost.Place) error) error {
	p, err := clientconfig.Here()
	if err != nil {
		return err
	}
	all, err := nativehost.Used(p, dir)
	if err != nil {
		return err
	}
	return cli.Interruptible(cmd.Context(), func() error {
		var errs []error
		for _, h := range all {
			if err := printPath(cmd, h.File(), do(h)); !errors.Is(err, nativehost.ErrNone) {
				errs = append(errs, err)
			}
		}
		return errors.Join(errs...)
	})
}

// printPath prints the path of a file, if writing or removing it has succeeded.
func printPath(cmd *cobra.Command, path string, err error) error {
	if err == nil {
		_, err = fmt.Fprintln(cmd.OutOrStdout(), path)
	}
	return err
}
