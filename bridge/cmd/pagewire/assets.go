package main

import (
	"crypto/sha512"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/pagewire/pagewire/bridge/assets"
	"github.com/pagewire/pagewire/bridge/cmd/internal/cli"
)

func assetsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "assets",
		Short: "List or write the files that a site hosts",
		Long: "This binary contains the files that a page loads. A site hosts them in one directory and adds one script\n" +
			"tag for pagewire.js. When an agent comes, pagewire.js finds the other files beside itself.\n\n" +
			"Serve them compressed, and pagewire.wasm as application/wasm. If their path has the version in it, add\n" +
			"Cache-Control: public, max-age=31536000, immutable.",
		Example: "  pagewire assets write ./public",
		RunE:    func(cmd *cobra.Command, args []string) error { return cmd.Help() },
		Args:    noArguments,
	}
	list := &cobra.Command{
		Use:     "list",
		Short:   "Print name, size in bytes and subresource integrity of each file",
		Example: "  pagewire assets list",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, args []string) error {
			table := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
			err := eachAsset(func(name string, content []byte) error {
				_, err := fmt.Fprintf(table, "%s\t%d\t%s\n", name, len(content), integrity(content))
				return err
			})
			if err != nil {
				return err
			}
			return table.Flush()
		},
	}
	var force bool
	write := &cobra.Command{
		Use:     "write DIR",
		Short:   "Write the files into a directory",
		Long:    "Writes the files into DIR, which is created if needed, and prints the path of each.",
		Example: "  pagewire assets write ./public",
		Args:    arguments("DIR", 1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return writeAssets(cmd, args[0], force)
		},
	}
	write.Flags().BoolVar(&force, "force", false, "overwrite existing files")
	cmd.AddCommand(list, write)
	return cmd
}

// writeAssets writes all files. Without force it writes none if one of them exists.
func writeAssets(cmd *cobra.Command, dir string, force bool) error {
	if _, err := assets.FS(); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if !force {
		err := eachAsset(func(name string, _ []byte) error {
			path := filepath.Join(dir, name)
			if _, err := os.Lstat(path); err == nil {
				return cli.Hint(fmt.Errorf("%s is there already", path),
					"nothing was written; --force overwrites")
			} else if !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return eachAsset(func(name string, content []byte) error {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, content, 0o644); err != nil {
			return err
		}
		_, err := fmt.Fprintln(cmd.OutOrStdout(), path)
		return err
	})
}

func eachAsset(do func(name string, content []byte) error) error {
	files, err := assets.FS()
	if err != nil {
		return err
	}
	for _, name := range assets.Names {
		content, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		if err := do(name, content); err != nil {
			return err
		}
	}
	return nil
}

// integrity returns the value of the integrity attribute for a script tag that loads content.
func integrity(content []byte) string {
	sum := sha512.Sum384(content)
	return "sha384-" + base64.StdEncoding.EncodeToString(sum[:])
}
