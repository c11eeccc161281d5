package main

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"debug/elf"
	"debug/macho"
	"debug/pe"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	cdx "github.com/CycloneDX/cyclonedx-go"

	"github.com/pagewire/pagewire/bridge/gateway/assets"
	"github.com/pagewire/pagewire/js/build/commands"
)

// verify looks at a release as it lies in a directory: that its sums are right and of all of it, that one version
// stands everywhere, that each program is of its platform, that those of this platform start, and that nothing names
// the directory in which it was built.
func verify(dir, built string) error {
	made, err := summed(dir)
	if err != nil {
		return err
	}
	var sri struct {
		Version   string
		Integrity map[string]string
	}
	if err := json.Unmarshal(made[sriFile], &sri); err != nil {
		return fmt.Errorf("%s: %w", sriFile, err)
	}
	v := verifier{version: sri.Version, integrity: sri.Integrity, built: []byte(built)}
	var errs []error
	for name, text := range made {
		if err := v.artefact(name, text); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", name, err))
		}
	}
	if v.packages == 0 || v.programs == 0 || v.extensions == 0 || v.bills == 0 {
		errs = append(errs, fmt.Errorf("%s lacks npm packages, programs, extensions or a parts list", dir))
	}
	return errors.Join(errs...)
}

// summed reads what SHA256SUMS names, and refuses what is not as it says or not named.
func summed(dir string) (map[string][]byte, error) {
	sums, err := os.ReadFile(filepath.Join(dir, sumsFile))
	if err != nil {
		return nil, err
	}
	made := map[string][]byte{}
	for line := range strings.Lines(string(sums)) {
		want, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return nil, err
		}
		if got := fmt.Sprintf("%x", sha256.Sum256(text)); got != want {
			return nil, fmt.Errorf("%s has the sum %s, and in %s it is %s", name, got, sumsFile, want)
		}
		made[name] = text
	}
	entries, err := os.ReadDir(dir)
	for _, entry := range entries {
		if name := entry.Name(); made[name] == nil && name != sumsFile && name != notesFile {
			return nil, fmt.Errorf("%s is not in %s", name, sumsFile)
		}
	}
	return made, err
}

type verifier struct {
	version                               string
	built                                 []byte
	integrity                             map[string]string
	packages, programs, extensions, bills int // how many it has seen
}

func (v *verifier) artefact(name string, text []byte) error {
	if name != sriFile && name != "install.sh" && !strings.Contains(name, "-"+v.version) {
		return fmt.Errorf("its name is of another version than %s", v.version)
	}
	if bytes.Contains(text, v.built) {
		return fmt.Errorf("it names %s", v.built)
	}
	switch {
	case name == sriFile:
		return nil
	case name == "install.sh":
		if !bytes.Contains(text, []byte("PAGEWIRE_VERSION:-"+v.version+"}")) {
			return fmt.Errorf("it does not install %s", v.version)
		}
		return nil
	case strings.HasSuffix(name, ".cdx.json"):
		v.bills++
		return v.bill(text)
	}
	files, err := unpacked(name, text)
	if err != nil {
		return err
	}
	of := map[string]file{}
	for _, f := range files {
		if bytes.Contains(f.text, v.built) {
			return fmt.Errorf("its %s names %s", f.name, v.built)
		}
		_, below, _ := strings.Cut(f.name, "/") // package/, or the name of the archive
		if strings.HasPrefix(name, "pagewire-extension-") {
			below = f.name
		}
		of[below] = f
	}
	if len(of[licencesFile].text) < 500 || len(of["LICENSE"].text) == 0 {
		return fmt.Errorf("it lacks LICENSE or %s", licencesFile)
	}
	switch {
	case strings.HasPrefix(name, "pagewire-extension-"):
		v.extensions++
		return v.extension(of["manifest.json"].text)
	case strings.HasSuffix(name, ".tgz"):
		v.packages++
		return v.npm(of)
	}
	v.programs++
	return v.archive(name, of)
}

func (v *verifier) bill(text []byte) error {
	var bom cdx.BOM
	if err := cdx.NewBOMDecoder(bytes.NewReader(text), cdx.BOMFileFormatJSON).Decode(&bom); err != nil {
		return err
	}
	if bom.Metadata.Component.Version != v.version {
		return fmt.Errorf("it is of version %s", bom.Metadata.Component.Version)
	}
	for _, want := range []string{"github.com/modelcontextprotocol/go-sdk", "github.com/hack-pad/safejs", "std",
		"preact"} {
		if !slices.ContainsFunc(*bom.Components, func(c cdx.Component) bool { return c.Name == want }) {
			return fmt.Errorf("it does not name %s", want)
		}
	}
	return nil
}

func (v *verifier) extension(text []byte) error {
	var manifest struct {
		Version string
		Name    string `json:"version_name"`
	}
	if err := json.Unmarshal(text, &manifest); err != nil {
		return err
	}
	number, _, _ := strings.Cut(v.version, "-")
	if manifest.Version != number || manifest.Name != "" && manifest.Name != v.version {
		return fmt.Errorf("its manifest has version %s, %q", manifest.Version, manifest.Name)
	}
	return nil
}

// npm looks at a package: pagewire, whose files are those of SRI.json, or the program of a platform.
func (v *verifier) npm(of map[string]file) error {
	var manifest struct {
		Name, Version string
		Optional      map[string]string `json:"optionalDependencies"`
	}
	if err := json.Unmarshal(of["package.json"].text, &manifest); err != nil {
		return err
	}
	if manifest.Version != v.version {
		return fmt.Errorf("package.json has version %s", manifest.Version)
	}
	if manifest.Name != "pagewire" {
		for _, p := range commands.Platforms {
			if p.Package() == manifest.Name {
				return v.program(p, "pagewire", of["bin/"+p.File("pagewire")])
			}
		}
		return fmt.Errorf("no package is called %s", manifest.Name)
	}
	for _, p := range commands.Platforms {
		if its := manifest.Optional[p.Package()]; its != v.version {
			return fmt.Errorf("it wants %s of version %q", p.Package(), its)
		}
	}
	// These say it to who they connect to.
	for _, name := range []string{"pagewire.core.js", "extension.page.js", "extension.worker.js"} {
		if !bytes.Contains(of[name].text, []byte(v.version)) {
			return fmt.Errorf("%s is of another version", name)
		}
	}
	for _, name := range assets.Names {
		if got := integrity(of[name].text); got != v.integrity[name] {
			return fmt.Errorf("integrity of %s is %s, and in %s %q", name, got, sriFile, v.integrity[name])
		}
	}
	return nil
}

func (v *verifier) archive(name string, of map[string]file) error {
	for _, p := range commands.Platforms {
		if strings.Contains(name, "-"+p.OS+"-"+p.Arch+".") {
			return errors.Join(v.program(p, "pagewire", of[p.File("pagewire")]),
				v.program(p, "pagewire-node", of[p.File("pagewire-node")]))
		}
	}
	return errors.New("it is of no platform")
}

// program looks at a program: its mode, its format, its version, and, on this platform, what it answers.
func (v *verifier) program(p commands.Platform, name string, f file) error {
	if f.mode&0o111 == 0 {
		return fmt.Errorf("%s is not there, or cannot be run", p.File(name))
	}
	if err := ofPlatform(p, f.text); err != nil {
		return fmt.Errorf("%s: %w", p.File(name), err)
	}
	info, err := buildinfo.Read(bytes.NewReader(f.text))
	if err != nil {
		return err
	}
	if info.Path != "github.com/pagewire/pagewire/bridge/cmd/"+name || !bytes.Contains(f.text, []byte(v.version)) {
		return fmt.Errorf("%s is %s, of another version than %s", p.File(name), info.Path, v.version)
	}
	if p != commands.Host {
		return nil
	}
	dir, err := os.MkdirTemp("", "pagewire-release-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, path.Base(f.name))
	if err := os.WriteFile(path, f.text, 0o755); err != nil {
		return err
	}
	return v.answers(path, name)
}

// answers runs a program.
func (v *verifier) answers(path, name string) error {
	asks := []string{"version"}
	if name == "pagewire-node" {
		asks = []string{"--version"}
	}
	out, err := exec.Command(path, asks...).CombinedOutput()
	if err != nil || !slices.Contains(strings.Fields(string(out)), v.version) {
		return fmt.Errorf("%s %s says %q, %v", name, asks[0], out, err)
	}
	if name != "pagewire" {
		return nil
	}
	if out, err = exec.Command(path, "assets", "list").CombinedOutput(); err != nil {
		return fmt.Errorf("pagewire assets list: %w: %s", err, out)
	}
	for name, want := range v.integrity {
		if !bytes.Contains(out, []byte(want)) {
			return fmt.Errorf("pagewire holds another %s than that of %s", name, sriFile)
		}
	}
	return nil
}

// ofPlatform refuses a program whose format is not that of its platform.
func ofPlatform(p commands.Platform, text []byte) error {
	var got string
	r := bytes.NewReader(text)
	if f, err := elf.NewFile(r); err == nil {
		got = "linux/" + map[elf.Machine]string{elf.EM_X86_64: "amd64", elf.EM_AARCH64: "arm64"}[f.Machine]
	} else if f, err := macho.NewFile(r); err == nil {
		got = "darwin/" + map[macho.Cpu]string{macho.CpuAmd64: "amd64", macho.CpuArm64: "arm64"}[f.Cpu]
	} else if f, err := pe.NewFile(r); err == nil {
		got = "windows/" + map[uint16]string{pe.IMAGE_FILE_MACHINE_AMD64: "amd64",
			pe.IMAGE_FILE_MACHINE_ARM64: "arm64"}[f.Machine]
	}
	if got != p.String() {
		return fmt.Errorf("it is a program for %q, not for %s", got, p)
	}
	return nil
}
