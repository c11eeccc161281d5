package main

import (
	"crypto/sha512"
	"encoding/base64"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/pagewire/pagewire/bridge/assets"
	"github.com/pagewire/pagewire/bridge/cmd/pagewire/clientconfig/files"
)

func assetsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "assets",
		Short: "List or write the files that a site hosts",
		Long: "A site hosts these files in one directory, and adds a script tag for pagewire.js\n" +
			"(which finds the others itself). Serve them compressed, and pagewire.wasm as\n" +
			"application/wasm. If the path contains the version, they never change.",
		Example: "  pagewire assets write ./public",
		RunE:    func(cmd *cobra.Command, args []string) error { return cmd.Help() },
		Args:    noArguments,
	}
	var to results
	list := &cobra.Command{
		Use:     "list",
		Short:   "Print name, size in bytes and subresource integrity of each file",
		Example: "  pagewire assets list",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, args []string) error {
			var list []map[string]any
			var rows [][]string
			err := eachAsset(func(name string, content []byte) error {
				size, hash := len(content), integrity(content)
				list = append(list, map[string]any{"name": name, "bytes": size, "integrity": hash})
				rows = append(rows, []string{name, fmt.Sprint(size), hash})
				return nil
			})
			if err != nil {
				return err
			}
			to.wide = true // part of a hash is of no use
			return to.printList(cmd, list, rows)
		},
	}
	to.add(list, "a JSON array")
	var force bool
	write := &cobra.Command{
		Use:     "write DIR",
		Short:   "Write the files into a directory",
		Long:    "Writes the files into DIR, which it creates if needed, and prints their paths.",
		Example: "  pagewire assets write ./public",
		Args:    arguments("DIR", 1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return writeAssets(cmd, args[0], force)
		},
	}
	write.Flags().BoolVar(&force, "force", false, "overwrite existing files")
	pathsAsJSON(write)
	write.ValidArgsFunction = completeDirectories
	cmd.AddCommand(list, write)
	return cmd
}

// writeAssets writes all files, or none: without force none if one of them exists.
func writeAssets(cmd *cobra.Command, dir string, force bool) error {
	change := files.Change{Title: "the program that writes it", Public: true}
	if _, err := assets.FS(); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	err := eachAsset(func(name string, content []byte) error {
		file, err := change.File(filepath.Join(dir, name))
		switch {
		case err != nil:
			return err
		case file.Is != nil && !force:
			return exists(file.Name)
		}
		file.Is = content
		return nil
	})
	if err != nil {
		return err
	}
	if _, err = change.Do(cmd.Context()); err != nil {
		return err
	}
	for _, file := range change.Files {
		if _, err := fmt.Fprintln(cmd.OutOrStdout(), file.Name); err != nil {
			return err
		}
	}
	return nil
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
