package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// licencesFile is in every archive that has something of others in it: most of their licences want to be handed on.
const licencesFile = "THIRD-PARTY-LICENSES.txt"

var licenceName = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|copyright|patents)([.-].*)?$`)

// licences returns the texts of the modules' licences and notices, each text once, behind the modules that it is of.
func licences(modules []module) ([]byte, error) {
	var order []string
	owners := map[string][]string{}
	for _, m := range modules {
		texts, err := licencesOf(m)
		if err != nil {
			return nil, err
		}
		for _, text := range texts {
			if owners[text] == nil {
				order = append(order, text)
			}
			owners[text] = append(owners[text], m.path+" "+m.version)
		}
	}
	var out strings.Builder
	out.WriteString("What of others is in this package, and under which terms.\n")
	for _, text := range order {
		rule := strings.Repeat("-", 80)
		fmt.Fprintf(&out, "\n%s\n%s\n%s\n\n%s\n", rule, strings.Join(slices.Compact(owners[text]), "\n"), rule, text)
	}
	return []byte(out.String()), nil
}

// licencesOf refuses a module that has none: then it may not be shipped.
func licencesOf(m module) (texts []string, err error) {
	if m.path == "tinygo" { // its archives have no file for it
		return []string{"BSD-3-Clause: https://github.com/tinygo-org/tinygo/blob/release/LICENSE"}, nil
	}
	entries, err := os.ReadDir(m.dir)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", m.path, m.version, err)
	}
	for _, entry := range entries {
		if entry.IsDir() || !licenceName.MatchString(entry.Name()) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(m.dir, entry.Name()))
		if err != nil {
			return nil, err
		}
		texts = append(texts, strings.TrimSpace(strings.ReplaceAll(string(text), "\r\n", "\n")))
	}
	if len(texts) == 0 {
		return nil, fmt.Errorf("%s %s is linked and has no licence file in %s", m.path, m.version, m.dir)
	}
	return texts, nil
}
