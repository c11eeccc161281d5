package main

import (
	"bytes"
	"crypto/sha256"
	"crypto/sha512"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pagewire/pagewire/bridge/gateway/assets"
	"github.com/pagewire/pagewire/js/build/commands"
)

const (
	sumsFile  = "SHA256SUMS"
	sriFile   = "SRI.json"
	notesFile = "NOTES.md"
)

// installer is install.sh, but for the version that it installs.
//
//go:embed install.sh
var installer string

// An artefact is a file of the release.
type artefact struct {
	name string
	text []byte
}

// write makes dist/release of what build has made.
func (m *maker) write() error {
	all, err := m.collect()
	if err != nil {
		return err
	}
	var made []artefact
	for _, step := range []func(parts) ([]artefact, error){m.npm, m.programs, m.extensions, m.texts} {
		its, err := step(all)
		if err != nil {
			return err
		}
		made = append(made, its...)
	}
	slices.SortFunc(made, func(a, b artefact) int { return strings.Compare(a.name, b.name) })
	var sums bytes.Buffer
	for _, a := range made {
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(a.text), a.name)
	}
	notes := fmt.Sprintf("%s\nMade of commit %s; the core is compiled by %s. [How to install it, and to check what you got]"+
		"(https://github.com/pagewire/pagewire/blob/main/demo/docs/install.md).\n", m.notes, m.commit, m.compiler())
	made = append(made, artefact{sumsFile, sums.Bytes()}, artefact{notesFile, []byte(notes)})
	if err := os.MkdirAll(m.out, 0o755); err != nil {
		return err
	}
	for _, a := range made {
		err = errors.Join(err, os.WriteFile(filepath.Join(m.out, a.name), a.text, 0o644))
	}
	return err
}

// archive packs files with the licences of what of others is in them.
func (m *maker) archive(name, dir string, files []file, modules []module) (artefact, error) {
	terms, err := licences(modules)
	if err != nil {
		return artefact{}, err
	}
	files = append(files, file{licencesFile, plain, terms})
	text, err := packed(name, below(dir, files), m.at)
	return artefact{name, text}, err
}

// inProgram says which files are in a program: those that a site hosts, and the inspector.
func inProgram(file string) bool {
	return file == "pagewire" || file == "pagewire.inject.js" || slices.Contains(assets.Names, file) ||
		strings.HasPrefix(file, "inspector/")
}

// programs are the archives of both programs, one for each platform.
func (m *maker) programs(all parts) (made []artefact, err error) {
	modules := all.of(func(file string) bool { return inProgram(file) || file == "pagewire-node" })
	for _, platform := range m.platforms {
		files, err := m.read(m.root, plain, "README.md", "LICENSE")
		if err != nil {
			return nil, err
		}
		programs, err := m.read(m.linked(platform), program, platform.File("pagewire"),
			platform.File("pagewire-node"))
		if err != nil {
			return nil, err
		}
		dir := fmt.Sprintf("pagewire-%s-%s-%s", m.version, platform.OS, platform.Arch)
		ending := ".tar.gz"
		if platform.OS == "windows" {
			ending = ".zip"
		}
		a, err := m.archive(dir+ending, dir, append(programs, files...), modules)
		if err != nil {
			return nil, err
		}
		made = append(made, a)
	}
	return made, nil
}

// extensions are those for the stores, which give an extension its key and refuse one that has another, and the one
// that is loaded unpacked, whose key the native host knows.
func (m *maker) extensions(all parts) (made []artefact, err error) {
	modules := all.of(func(file string) bool { return strings.HasPrefix(file, "extension/") })
	for _, e := range []struct {
		name, from string
		keyed      bool
	}{
		{"pagewire-extension-", "extension", true},
		{"pagewire-extension-chrome-", "extension", false},
		{"pagewire-extension-edge-", "extension", false},
		{"pagewire-extension-firefox-", "extension-firefox", false},
	} {
		files, err := filesOf(filepath.Join(m.root, "dist", e.from))
		if err != nil {
			return nil, err
		}
		for i, f := range files {
			if f.name == "manifest.json" && !e.keyed {
				if files[i].text, err = keyless(f.text); err != nil {
					return nil, err
				}
			}
		}
		licence, err := m.read(m.root, plain, "LICENSE")
		if err != nil {
			return nil, err
		}
		a, err := m.archive(e.name+m.version+".zip", "", append(files, licence...), modules)
		if err != nil {
			return nil, err
		}
		made = append(made, a)
	}
	return made, nil
}

// keyless is a manifest without the key.
func keyless(text []byte) ([]byte, error) {
	var manifest map[string]json.RawMessage
	if err := json.Unmarshal(text, &manifest); err != nil {
		return nil, err
	}
	delete(manifest, "key")
	return json.MarshalIndent(manifest, "", "  ")
}

// texts are what is no archive.
func (m *maker) texts(all parts) ([]artefact, error) {
	bill, err := m.bill(all)
	if err != nil {
		return nil, err
	}
	integrities := map[string]string{}
	for _, name := range assets.Names {
		text, err := os.ReadFile(filepath.Join(m.root, "dist", name))
		if err != nil {
			return nil, err
		}
		integrities[name] = integrity(text)
	}
	sri, err := json.MarshalIndent(map[string]any{"version": m.version, "integrity": integrities}, "", "  ")
	return []artefact{
		{"pagewire-" + m.version + ".cdx.json", bill},
		{sriFile, append(sri, '\n')},
		{"install.sh", []byte(strings.ReplaceAll(installer, "@VERSION@", m.version))},
	}, err
}

// integrity is what belongs into the integrity attribute of a script tag that loads content.
func integrity(content []byte) string {
	sum := sha512.Sum384(content)
	return "sha384-" + base64.StdEncoding.EncodeToString(sum[:])
}

// read reads files of a directory.
func (m *maker) read(dir string, mode os.FileMode, names ...string) (files []file, err error) {
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return nil, err
		}
		files = append(files, file{name, mode, text})
	}
	return files, nil
}

// npm are the npm packages: pagewire, and the program of each platform.
func (m *maker) npm(all parts) ([]artefact, error) {
	files, err := filesOf(filepath.Join(m.root, "dist", "npm"))
	if err != nil {
		return nil, err
	}
	held := func(name string) bool { return slices.ContainsFunc(files, func(f file) bool { return f.name == name }) }
	main, err := m.archive("pagewire-"+m.version+".tgz", "package", files, all.of(held))
	if err != nil {
		return nil, err
	}
	made := []artefact{main}
	for _, platform := range m.platforms {
		a, err := m.platformPackage(platform, all.of(inProgram))
		if err != nil {
			return nil, err
		}
		made = append(made, a)
	}
	return made, nil
}

// platformPackage holds pagewire alone, without pagewire-node: it is for the desktop, and installed with pagewire.
func (m *maker) platformPackage(p commands.Platform, modules []module) (artefact, error) {
	text, err := os.ReadFile(filepath.Join(m.root, "dist", "npm", "package.json"))
	if err != nil {
		return artefact{}, err
	}
	var of struct{ License, Homepage, Repository json.RawMessage }
	if err := json.Unmarshal(text, &of); err != nil {
		return artefact{}, err
	}
	system, cpu := p.NPM()
	manifest, err := json.MarshalIndent(struct {
		Name        string          `json:"name"`
		Version     string          `json:"version"`
		Description string          `json:"description"`
		License     json.RawMessage `json:"license"`
		Homepage    json.RawMessage `json:"homepage"`
		Repository  json.RawMessage `json:"repository"`
		OS          []string        `json:"os"`
		CPU         []string        `json:"cpu"`
		Unplugged   bool            `json:"preferUnplugged"` // Yarn leaves it out of its zip, from which nothing starts
	}{p.Package(), m.version, "The program of npm's pagewire for " + system + " on " + cpu, of.License, of.Homepage,
		of.Repository, []string{system}, []string{cpu}, true}, "", "  ")
	if err != nil {
		return artefact{}, err
	}
	readme := fmt.Sprintf("# %s\n\nThe program of [pagewire](https://www.npmjs.com/package/pagewire) for %s on %s. "+
		"Install `pagewire`, which brings it.\n", p.Package(), system, cpu)
	programs, err := m.read(m.linked(p), program, p.File("pagewire"))
	if err != nil {
		return artefact{}, err
	}
	licence, err := m.read(m.root, plain, "LICENSE")
	if err != nil {
		return artefact{}, err
	}
	texts := []file{{"package.json", plain, append(manifest, '\n')}, {"README.md", plain, []byte(readme)}}
	files := slices.Concat(texts, licence, below("bin", programs))
	name := fmt.Sprintf("pagewire-cli-%s-%s-%s.tgz", system, cpu, m.version)
	return m.archive(name, "package", files, modules)
}
