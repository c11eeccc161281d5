package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// A plan is what is known of a release before anything is built.
type plan struct {
	version, commit string
	at              time.Time // of the commit: the only time that is in a release
	notes           string
}

// semver is a version of Semantic Versioning 2.0.0 without build metadata, which npm drops.
var semver = regexp.MustCompile(`^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)` +
	`(-(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)(\.(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*))*)?$`)

// planned refuses what must not be released, with the reason and what to do.
func planned(root, version string) (plan, error) {
	if !semver.MatchString(version) {
		return plan{}, fmt.Errorf("VERSION is %q, which is no semantic version: write it as in make release "+
			"VERSION=0.2.0-rc.1", version)
	}
	p := plan{version: version}
	text, err := os.ReadFile(filepath.Join(root, "CHANGELOG.md"))
	if err != nil {
		return plan{}, err
	}
	if p.notes, err = notesOf(string(text), version); err != nil {
		return plan{}, err
	}
	if !candidate(version) {
		if err := agrees(filepath.Join(root, "js", "package.json"), version); err != nil {
			return plan{}, err
		}
	}
	changed, err := git(root, "status", "--porcelain")
	if err != nil {
		return plan{}, err
	}
	if changed != "" {
		return plan{}, fmt.Errorf("the tree differs from what is committed, which is what a release is made of: "+
			"commit or stash this first:\n%s", changed)
	}
	head, err := git(root, "log", "-1", "--format=%H %ct")
	if err != nil {
		return plan{}, err
	}
	commit, seconds, _ := strings.Cut(head, " ")
	unix, err := strconv.ParseInt(seconds, 10, 64)
	p.commit, p.at = commit, time.Unix(unix, 0).UTC()
	return p, err
}

// candidate reports whether a version comes before a release: 0.2.0-rc.1.
func candidate(version string) bool { return strings.Contains(version, "-") }

// agrees refuses a release whose commit has another version in js/package.json: who builds that commit gets it.
func agrees(path, version string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var its struct{ Version string }
	if err := json.Unmarshal(text, &its); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if its.Version != version {
		return fmt.Errorf("js/package.json says %s: commit version %s there first (a candidate, %s-rc.1, may differ)",
			its.Version, version, version)
	}
	return nil
}

const unreleased = ", not yet released"

// notesOf cuts the section of a version out of a changelog. A candidate has the section of the version that it leads
// to, or else the one that is not yet released.
func notesOf(changelog, version string) (string, error) {
	sections := strings.Split("\n"+changelog, "\n## ")[1:]
	final, _, _ := strings.Cut(version, "-")
	find := func(fits func(title string) bool) (string, bool) {
		for _, section := range sections {
			title, body, _ := strings.Cut(section, "\n")
			if fits(title) {
				return strings.TrimSpace(body) + "\n", true
			}
		}
		return "", false
	}
	named := func(version string) func(string) bool {
		return func(title string) bool {
			name, _, _ := strings.Cut(title, ",")
			return strings.TrimSpace(name) == version && (candidate(version) || !strings.HasSuffix(title, unreleased))
		}
	}
	ways := []func(string) bool{named(version)}
	if candidate(version) {
		ways = append(ways, named(final), func(title string) bool { return strings.HasSuffix(title, unreleased) })
	}
	for _, way := range ways {
		if notes, found := find(way); found {
			return notes, nil
		}
	}
	return "", fmt.Errorf("CHANGELOG.md has no section \"## %s\": write it, without %q (a candidate such as %s-rc.1 "+
		"may have the section that ends so)", version, unreleased, final)
}

// git returns what a git command prints of the repository.
func git(root string, args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir = root
	out, err := cmd.Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return "", fmt.Errorf("git %s: %w: %s", args[0], err, exit.Stderr)
	}
	return strings.TrimSpace(string(out)), err
}
