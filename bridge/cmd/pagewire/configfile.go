package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/pagewire/pagewire/bridge/desktop/serve"
	"github.com/pagewire/pagewire/bridge/internal/userdir"
)

// The configuration file has defaults for the flags of pagewire serve. The serve of each agent reads
// it for that agent; a daemon that they start reads nothing. Flags about ports and the node count
// only for a serve that the command line makes the daemon: --http, --node or --stdio=false.

// maxConfig bounds the file, in bytes.
const maxConfig = 64 << 10

// A configFile has the texts for each flag that the file at path sets.
type configFile struct {
	path string
	set  map[string][]string
}

// readConfig reads the file that --config names: none and "" are no file, and auto is the usual one,
// which need not exist.
func readConfig(named string) (c configFile, err error) {
	c.path = named
	if named == "auto" {
		dir, err := os.UserConfigDir()
		if err != nil || !filepath.IsAbs(dir) {
			return configFile{path: "pagewire.toml"}, nil // a service without a home
		}
		c.path = filepath.Join(dir, "pagewire", "pagewire.toml")
	}
	info, err := os.Stat(c.path)
	_, absent := os.Lstat(c.path) // a link to what is not there is a mistake: the file may hide pages
	switch {
	case named == "" || named == "none" || named == "auto" && absent != nil:
		return c, nil
	case err == nil && !info.Mode().IsRegular():
		err = errors.New("it is not a regular file")
	case err == nil && userdir.Permits(info.Mode(), 0o002): // it can name a program to run
		err = errors.New("any user may write it")
	case err == nil && info.Size() > maxConfig:
		err = errors.New("it is larger than 64 KiB")
	case err == nil:
		err = c.read()
	}
	if err != nil {
		cause := strings.ReplaceAll(plain(err.Error()), c.path+": ", "")
		err = fmt.Errorf("configuration file %s: %s: correct it, or use --config none", c.path, cause)
	}
	return c, err
}

func (c *configFile) read() error {
	text, err := os.ReadFile(c.path)
	if err != nil {
		return err
	}
	text = bytes.TrimPrefix(text, []byte("\ufeff")) // some editors begin with a byte order mark
	var all map[string]any
	var invalid *toml.DecodeError
	if err := toml.Unmarshal(text, &all); errors.As(err, &invalid) {
		line, _ := invalid.Position()
		return fmt.Errorf(`line %d is not TOML, such as launch = true or name = "Work"`, line)
	} else if err != nil {
		return err
	}
	c.set = map[string][]string{}
	flags := serveInto(new(serveFlags)).Flags()
	for _, key := range slices.Sorted(maps.Keys(all)) {
		at := regexp.MustCompile(`(?m)^[ \t["']*` + regexp.QuoteMeta(key) + `\b[^-]`).FindIndex(text)
		line := 1 + bytes.Count(text[:slices.Max(append(at, 0))], []byte("\n"))
		flag := flags.Lookup(key)
		if flag == nil || slices.Contains([]string{"config", "stdio", "any-scheme"}, key) {
			return fmt.Errorf("line %d: unknown key %q: keys are flags of pagewire serve", line, key)
		}
		values, isList := all[key].([]any)
		if !isList {
			values = []any{all[key]}
		}
		what, _ := pflag.UnquoteUsage(flag)
		_, takesList := flag.Value.(pflag.SliceValue)
		for _, value := range values {
			text := fmt.Sprint(value)
			if what == "file" && !filepath.IsAbs(text) { // agents start serve anywhere
				text = filepath.Join(filepath.Dir(c.path), text)
			}
			want := map[bool]string{true: `a list, such as ["a", "b"]`, false: "one value"}[takesList]
			_, isText := value.(string)
			_, isTable := value.(map[string]any)
			takesText := !slices.Contains([]string{"bool", "int"}, flag.Value.Type())
			if isList == takesList && !isTable {
				want = map[bool]string{true: "a text in quotes", false: "no quotes"}[takesText]
			}
			if isList != takesList || isTable || isText != takesText {
				return fmt.Errorf("line %d: %s: want %s", line, key, want)
			} else if err := flags.Set(key, text); err != nil {
				return fmt.Errorf("line %d: %w", line, flagError(err))
			} else if err := checkHub(text); key == "hub" && err != nil {
				return fmt.Errorf("line %d: %w", line, err)
			}
			c.set[key] = append(c.set[key], text)
		}
	}
	return nil
}

// instead are flags of which the command line's takes the place of the file's.
var instead = map[string]string{"launch": "chrome", "chrome": "launch",
	"node-ticket-command": "node-ticket-file", "node-ticket-file": "node-ticket-command"}

// addConfig sets the flags that the command line lacks to what the configuration file says, and
// returns how to say that. deny-origin adds up: the command line shows nothing that the file hides.
func (o *serveFlags) addConfig(cmd *cobra.Command) (says string, err error) {
	c, err := readConfig(o.config)
	if err != nil {
		return "", err
	}
	flags, typed := cmd.Flags(), map[string]bool{"deny-origin": false}
	flags.Visit(func(f *pflag.Flag) { typed[f.Name] = f.Name != "deny-origin" })
	isDaemon := typed["http"] || typed["node"] || !o.Stdio
	for range 2 { // the second time for flags about others of the file
		for _, key := range slices.Sorted(maps.Keys(c.set)) {
			of := o.owner(flags.Changed, key)
			if typed[key] || typed[instead[key]] || of != nil && !of.there ||
				!isDaemon && (key == "http" || key == "node") {
				continue
			}
			for _, value := range c.set[key] {
				_ = flags.Set(key, value) // read has checked it
			}
			typed[key] = true
			says += ", " + key
		}
	}
	if says != "" {
		says = " (" + c.path + " sets " + says[2:] + ")"
	}
	return says, nil
}

// configuredHub is the address of the daemon for commands without --hub.
func configuredHub() (string, error) {
	c, err := readConfig("auto")
	return append(c.set["hub"], serve.DefaultHub)[0], err
}

// checkConfig is the doctor's finding about the file.
func checkConfig(context.Context, checkup) finding {
	c, err := readConfig("auto")
	if err == nil {
		_, err = parseServe(nil) // which finds what contradicts
	}
	switch keys := strings.Join(slices.Sorted(maps.Keys(c.set)), ", "); {
	case err != nil:
		return fail(err.Error(), "correct the file, or move it away")
	case keys == "":
		return ok("nothing is set in " + c.path)
	default:
		return ok(c.path + " sets " + keys)
	}
}
