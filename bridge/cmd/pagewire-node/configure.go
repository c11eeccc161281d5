package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/pagewire/pagewire/bridge/node/process"
)

// configure sets the issuers, and from environment and file the flags that the command line has not
// set.
func configure(cmd *cobra.Command, o *process.Options, env func(string) (string, bool),
	file string) error {
	if file == "" {
		file, _ = env(variable("config"))
	}
	members := map[string]json.RawMessage{}
	if file != "" {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		d := json.NewDecoder(bytes.NewReader(bytes.TrimPrefix(text, []byte("\ufeff"))))
		if err := d.Decode(&members); err != nil {
			return fmt.Errorf("%s is no JSON object: %w", file, err)
		}
		if _, err := d.Token(); !errors.Is(err, io.EOF) {
			return fmt.Errorf("%s has more text after its JSON object", file)
		}
	}
	if issuers := members["issuers"]; issuers != nil {
		d := json.NewDecoder(bytes.NewReader(issuers))
		d.DisallowUnknownFields()
		if err := d.Decode(&o.Issuers); err != nil {
			return fmt.Errorf("issuers in %s: %w", file, err)
		}
		delete(members, "issuers")
	}
	var wrong error
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		member, inFile := members[f.Name]
		delete(members, f.Name)
		if wrong != nil || f.Changed || f.Name == "config" || f.Name == "help" ||
			f.Name == "version" {
			return
		}
		if value, ok := env(variable(f.Name)); ok {
			if err := f.Value.Set(value); err != nil {
				wrong = fmt.Errorf("%s=%q: %w", variable(f.Name), value, err)
			}
		} else if inFile {
			if err := setFrom(f, member); err != nil {
				wrong = fmt.Errorf("%q in %s: %w", f.Name, file, err)
			}
		}
	})
	if wrong == nil && len(members) > 0 {
		return fmt.Errorf("%q in %s is no option", slices.Sorted(maps.Keys(members))[0], file)
	}
	return wrong
}

func variable(name string) string {
	return "PAGEWIRE_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
}

// setFrom sets a flag from a member of the file: a text, a number, true or false, or an array of
// texts.
func setFrom(f *pflag.Flag, member json.RawMessage) error {
	if list, ok := f.Value.(pflag.SliceValue); ok {
		var texts []string
		if err := json.Unmarshal(member, &texts); err != nil {
			return errors.New("it must be a list of strings")
		}
		return list.Replace(texts)
	}
	var value any
	d := json.NewDecoder(bytes.NewReader(member))
	d.UseNumber() // a float64 prints a million as 1e+06
	if err := d.Decode(&value); err != nil {
		return err
	}
	switch value.(type) {
	case string, bool, json.Number:
		return f.Value.Set(fmt.Sprint(value))
	}
	return errors.New("it must be a string, a number, true or false")
}
