// Command release prepares a release for GoReleaser, which links the programs, packs the archives and sums them
// (.goreleaser.yaml). `make release` runs both. It writes what GoReleaser does not know:
//
//	dist/release/install.sh                the script that installs a platform's programs
//	dist/release/SRI.json                  subresource integrity of the files that a site hosts
//	dist/release/pagewire-VERSION.cdx.json what of others is in which file: a CycloneDX parts list (SBOM)
//	dist/release/NOTES.md                  the section of CHANGELOG.md, and what compiled the core
//	dist/stage/                            files of the archives: licences, npm manifests, the stores' extension
//
// It refuses a tree that differs from its commit, a version that is none, and one that CHANGELOG.md does not know. It
// writes no file of the tree but those that git ignores, and never publishes.
package main

import (
	"bytes"
	"crypto/sha512"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/mod/semver"

	"github.com/pagewire/pagewire/bridge/gateway/assets"
	"github.com/pagewire/pagewire/js/build/commands"
)

// installer is install.sh, but for the version that it installs.
//
//go:embed install.sh
var installer string

// A plan is what is known of a release before anything is built.
type plan struct {
	version, commit, notes string
	at                     time.Time // of the commit: the only time that is in a release
}

func main() {
	version := flag.String("version", "", "the version to release, such as 0.2.0 or 0.2.0-rc.1")
	flag.Parse()
	p, err := planned(*version)
	if err == nil {
		err = p.prepare()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// planned refuses what must not be released, with the reason and what to do.
func planned(version string) (p plan, err error) {
	if v := "v" + version; semver.Canonical(v) != v {
		return p, fmt.Errorf("VERSION is %q, which is no semantic version: write make release VERSION=0.2.0-rc.1", version)
	}
	changelog, err := os.ReadFile("CHANGELOG.md")
	if err != nil {
		return p, err
	}
	if p.notes, err = notesOf(string(changelog), version); err != nil {
		return p, err
	}
	source, err := packageJSON("js/package.json")
	if err != nil {
		return p, err
	}
	if its := source["version"]; its != version && !strings.Contains(version, "-") {
		return p, fmt.Errorf("js/package.json says %s: commit version %s there first (a candidate, %s-rc.1, may differ)",
			its, version, version)
	}
	changed, err := exec.Command("git", "status", "--porcelain").Output()
	if err != nil || len(changed) > 0 {
		return p, errors.Join(err, fmt.Errorf("the tree differs from what is committed, which is what a release is made "+
			"of: commit or stash this first:\n%s", bytes.TrimSpace(changed)))
	}
	head, err := exec.Command("git", "log", "-1", "--format=%H %cI").Output()
	if err != nil {
		return p, fmt.Errorf("git log: %w", err)
	}
	commit, at, _ := strings.Cut(strings.TrimSpace(string(head)), " ")
	p.version, p.commit = version, commit
	p.at, err = time.Parse(time.RFC3339, at)
	return p, err
}

// notesOf cuts the section of a version out of a changelog. A candidate has the section of the version that it leads
// to, or the one that is not yet released.
func notesOf(changelog, version string) (string, error) {
	final, _, candidate := strings.Cut(version, "-")
	notes := ""
	for _, section := range strings.Split("\n"+changelog, "\n## ")[1:] {
		title, body, _ := strings.Cut(section, "\n")
		name, state, _ := strings.Cut(title, ", ")
		open := state == "not yet released"
		if name == final && (candidate || !open) {
			return strings.TrimSpace(body) + "\n", nil
		}
		if candidate && open {
			notes = strings.TrimSpace(body) + "\n"
		}
	}
	if notes != "" {
		return notes, nil
	}
	return "", fmt.Errorf("CHANGELOG.md has no section \"## %s\": write it, without \", not yet released\" (a candidate "+
		"such as %s-rc.1 may have the section that ends so)", version, final)
}

// packageJSON reads a package.json or a manifest.
func packageJSON(path string) (members map[string]any, err error) {
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, &members)
	}
	return members, err
}

// prepare builds the scripts and the core, and writes what GoReleaser packs.
func (p plan) prepare() error {
	if err := errors.Join(os.RemoveAll("dist"), os.RemoveAll("bridge/gateway/assets/dist")); err != nil {
		return err
	}
	if out, err := exec.Command("go", "run", "./js/build", "-version", p.version).CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	core, err := os.ReadFile("dist/meta/core")
	if err != nil {
		return err
	}
	all, err := collect(string(core))
	if err != nil {
		return err
	}
	notes := fmt.Sprintf("%s\nMade of commit %s; the core is compiled by %s. [How to install it, and to check what you "+
		"got](https://github.com/pagewire/pagewire/blob/main/demo/docs/install.md).\n", p.notes, p.commit, core)
	return errors.Join(
		write("release/NOTES.md", []byte(notes)),
		write("release/install.sh", []byte(strings.ReplaceAll(installer, "@VERSION@", p.version))),
		p.integrities(), p.bill(all, string(core)), p.platforms(), store(),
		licences("stage/programs", all.of(func(string) bool { return true })),
		licences("stage/scripts", all.of(func(file string) bool { return !isProgram(file) })))
}

func isProgram(file string) bool {
	_, is := commands.Programs[file]
	return is
}

// write writes a file below dist/.
func write(name string, text []byte) error {
	path := filepath.Join("dist", name)
	return errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, text, 0o644))
}

func writeJSON(name string, value any) error {
	text, err := json.MarshalIndent(value, "", "  ")
	return errors.Join(err, write(name, append(text, '\n')))
}

// integrities writes what belongs into the integrity attribute of a script tag, for each file that a site hosts.
func (p plan) integrities() error {
	sums := map[string]string{}
	for _, name := range assets.Names {
		text, err := os.ReadFile(filepath.Join("dist", name))
		if err != nil {
			return err
		}
		sum := sha512.Sum384(text)
		sums[name] = "sha384-" + base64.StdEncoding.EncodeToString(sum[:])
	}
	return writeJSON("release/SRI.json", map[string]any{"version": p.version, "integrity": sums})
}

// platforms writes the manifest and the README of each platform's npm package, which npm installs with pagewire.
func (p plan) platforms() error {
	of, err := packageJSON("dist/npm/package.json")
	for _, platform := range commands.Platforms {
		system, cpu := platform.NPM()
		dir := "stage/" + platform.OS + "-" + platform.Arch + "/"
		manifest := map[string]any{"name": platform.Package(), "version": p.version, "license": of["license"],
			"description": "The program of npm's pagewire for " + system + " on " + cpu, "homepage": of["homepage"],
			"repository": of["repository"], "os": []string{system}, "cpu": []string{cpu},
			"preferUnplugged": true} // Yarn leaves it out of its zip, from which nothing starts
		readme := fmt.Sprintf("# %s\n\nThe program of [pagewire](https://www.npmjs.com/package/pagewire) for %s on %s. "+
			"Install `pagewire`, which brings it.\n", platform.Package(), system, cpu)
		err = errors.Join(err, writeJSON(dir+"package.json", manifest), write(dir+"README.md", []byte(readme)))
	}
	return err
}

// store writes the extension for the stores of Chrome and Edge, which give it its key and refuse one that has another.
func store() error {
	manifest, err := packageJSON("dist/extension/manifest.json")
	delete(manifest, "key")
	return errors.Join(err, os.CopyFS("dist/stage/extension", os.DirFS("dist/extension")),
		os.Remove("dist/stage/extension/manifest.json"), writeJSON("stage/extension/manifest.json", manifest))
}
