// Command release VERSION prepares a release for GoReleaser, which links the programs, packs the
// archives and sums them (.goreleaser.yaml). With -bundles before VERSION it packs the linked
// programs as bundles. `make release` runs all three. This command writes the files that GoReleaser
// cannot make:
//
//	dist/release/install.sh                the script that installs a platform's programs
//	dist/release/SRI.json                  subresource integrity of the files that a site hosts
//	dist/release/pagewire-VERSION.cdx.json the modules of others in each file: a CycloneDX parts list (SBOM)
//	dist/release/NOTES.md                  the newest section of CHANGELOG.md, and the core's compiler
//	dist/release/*.mcpb, server.json       bundles for MCP hosts, and the entry of the MCP Registry: with -bundles
//	dist/release/*.pagewire-gemini-*.zip   the extension of Gemini CLI: with -bundles
//	dist/stage/                            files of the archives: licences, npm manifests, the stores' extension
//
// It writes only files that git ignores, and never publishes.
package main

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/mod/semver"

	"github.com/pagewire/pagewire/js/build/commands"
)

// installer is install.sh, with @VERSION@ in place of the version that it installs.
//
//go:embed install.sh
var installer string

// A plan has the facts about a release that are known before the build.
type plan struct{ version, commit, at, notes string }

func main() {
	bundles := flag.Bool("bundles", false, "pack the programs as bundles")
	flag.Parse()
	p, err := planned(strings.Join(flag.Args(), " "))
	switch {
	case err != nil:
	case *bundles:
		err = p.bundles()
	default:
		err = p.prepare()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// planned returns the plan. Its error says why a release must not be made, and what to do.
func planned(version string) (p plan, err error) {
	if v := "v" + version; semver.Canonical(v) != v {
		return p,
			fmt.Errorf(
				"VERSION is %q, which is no semantic version: write make release VERSION=0.2.0-rc.1", version)
	}
	changelog, err := os.ReadFile("CHANGELOG.md")
	if err != nil {
		return p, err
	}
	source, err := readJSON("js/package.json")
	if err != nil {
		return p, err
	}
	_, newest, _ := strings.Cut(string(changelog), "\n## ")
	newest, _, _ = strings.Cut(newest, "\n## ")
	title, notes, _ := strings.Cut(newest, "\n")
	candidate := strings.Contains(version, "-")
	if !candidate && !strings.HasPrefix(title, "["+version+"] - ") {
		return p, fmt.Errorf(
			"the newest section of CHANGELOG.md is %q: make it \"[%s] - DATE\" (a candidate, such as "+
				"%[2]s-rc.1, may be made of any)", title, version)
	} else if its := source["version"]; !candidate && its != version {
		return p, fmt.Errorf("js/package.json says %s: commit version %s there first", its, version)
	}
	changed, err := exec.Command("git", "status", "--porcelain").Output()
	if err != nil || len(changed) > 0 {
		return p, errors.Join(err,
			fmt.Errorf("the tree differs from what is committed, which is what a release is made "+
				"of: commit or stash this first:\n%s", bytes.TrimSpace(changed)))
	}
	head, err := exec.Command("git", "log", "-1", "--format=%H %cI").Output()
	commit, at, _ := strings.Cut(strings.TrimSpace(string(head)), " ")
	return plan{version, commit, at, strings.TrimSpace(notes)}, err
}

// readJSON reads a package.json or a manifest.
func readJSON(path string) (members map[string]any, err error) {
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, &members)
	}
	return members, err
}

// prepare builds the scripts and the core, and writes the files that GoReleaser packs.
func (p plan) prepare() error {
	if err := errors.Join(os.RemoveAll("dist"), os.RemoveAll("bridge/assets/dist")); err != nil {
		return err
	}
	out, err := exec.Command("go", "run", "./js/build", "-version", p.version).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	text, err := os.ReadFile("dist/core")
	if err != nil {
		return err
	}
	core := string(text)
	all, err := collect(core)
	if err != nil {
		return err
	}
	notes := fmt.Sprintf(
		"%s\n\nMade of commit %s; the core is compiled by %s. [How to install it, and to check what "+
			"you got](https://github.com/pagewire/pagewire/blob/main/demo/docs/install.md).\n",
		p.notes,
		p.commit, core)
	return errors.Join(
		write("release/NOTES.md", []byte(notes)),
		write("release/install.sh", []byte(strings.ReplaceAll(installer, "@VERSION@", p.version))),
		p.integrities(), p.bill(all, core), p.platforms(), store(),
		licences("stage/programs", all.modules("pagewire", "pagewire-node")),
		licences("stage/scripts", all.modules(pageFiles...)))
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

// integrities writes the integrity attribute of a script tag, for each file that a site hosts.
func (p plan) integrities() error {
	list, err := exec.Command("bin/pagewire", "assets", "list").Output()
	sums := map[string]string{}
	for line := range strings.Lines(string(list)) {
		if field := strings.Fields(line); len(field) == 3 { // name, size and integrity
			sums[field[0]] = field[2]
		}
	}
	return errors.Join(err, writeJSON("release/SRI.json", map[string]any{"version": p.version,
		"integrity": sums}))
}

// platforms writes the manifest of each platform's npm package, which npm installs with pagewire.
func (p plan) platforms() error {
	of, err := readJSON("dist/npm/package.json")
	for _, platform := range commands.Platforms {
		system, cpu := platform.NPM()
		manifest := map[string]any{"name": platform.Package(), "version": p.version,
			"license": of["license"],
			"description": "The program for " + system + " on " + cpu +
				": install pagewire, which brings it",
			"homepage": of["homepage"], "repository": of["repository"], "os": []string{system},
			"cpu": []string{cpu},
			// Yarn unpacks it then: a program does not start from Yarn's zip
			"preferUnplugged": true}
		err = errors.Join(err, writeJSON("stage/"+platform.OS+"-"+platform.Arch+"/package.json",
			manifest))
	}
	return err
}

// store writes the extension without its key, for the stores of Chrome and Edge: they give it one,
// and refuse another.
func store() error {
	manifest, err := readJSON("dist/extension/manifest.json")
	delete(manifest, "key")
	return errors.Join(err, os.CopyFS("dist/stage/extension", os.DirFS("dist/extension")),
		os.Remove("dist/stage/extension/manifest.json"),
		writeJSON("stage/extension/manifest.json", manifest))
}
