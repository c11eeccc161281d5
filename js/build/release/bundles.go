package main

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/pagewire/pagewire/js/build/commands"
)

const (
	repository = "https://github.com/pagewire/pagewire"
	// about describes Pagewire in the bundles and in server.json, in at most 100 characters.
	about = "Live state of the web pages you have open: agents list it, read it and are told of changes"
)

// object is a JSON object: encoding/json writes its members in the order of their names.
type object = map[string]any

// bundles writes the extension of Gemini CLI, a .mcpb for each platform (MCP Bundles, manifest 0.4;
// Claude Desktop installs it by a double click), and server.json for the MCP Registry, with the
// sums of the bundles. GoReleaser must have linked the programs.
func (p plan) bundles() error {
	packages := []object{{"registryType": "npm", "identifier": "pagewire", "version": p.version,
		"runtimeHint":      "npx",
		"transport":        object{"type": "stdio"},
		"packageArguments": []object{{"type": "positional", "value": "serve"}}}}
	for _, platform := range commands.Platforms {
		text, err := p.bundle(platform)
		if err != nil {
			return err
		}
		name := fmt.Sprintf("pagewire-mcp-%s-%s-%s.mcpb", p.version, platform.OS, platform.Arch)
		if err := write("release/"+name, text); err != nil {
			return err
		}
		sum := sha256.Sum256(text)
		packages = append(packages, object{"registryType": "mcpb", "version": p.version,
			"transport":  object{"type": "stdio"},
			"identifier": repository + "/releases/download/v" + p.version + "/" + name,
			"fileSha256": hex.EncodeToString(sum[:])})
	}
	if err := p.extensions(); err != nil {
		return err
	}
	return writeJSON("release/server.json", object{
		"$schema": "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json",
		"name":    commands.RegistryName, "title": "Pagewire", "description": about,
		"version": p.version, "websiteUrl": repository,
		"repository": object{"url": repository, "source": "github"}, "packages": packages})
}

// extensions writes js/gemini-extension for each system: Gemini CLI takes the file of a release
// whose name begins with its system.
func (p plan) extensions() error {
	from := os.DirFS("js/gemini-extension")
	files := []packed{{"LICENSE", 0o644, "LICENSE"}}
	// through the link to the skills
	for _, pattern := range []string{"*.json", "hooks/*.json", "skills/*/SKILL.md"} {
		names, err := fs.Glob(from, pattern)
		if err != nil || len(names) == 0 {
			return errors.Join(err, fmt.Errorf("js/gemini-extension has no %s: run make generate",
				pattern))
		}
		for _, name := range names {
			files = append(files, packed{name, 0o644, "js/gemini-extension/" + name})
		}
	}
	text, err := p.pack(nil, files)
	for _, system := range []string{"linux", "darwin", "win32"} {
		err = errors.Join(err, write("release/"+system+".pagewire-gemini-"+p.version+".zip", text))
	}
	return err
}

// bundle is a zip of the manifest, the program, the icon and the licences.
func (p plan) bundle(platform commands.Platform) ([]byte, error) {
	manifest, err := json.MarshalIndent(bundleManifest(p.version, platform), "", "  ")
	program := filepath.Join("dist", "goreleaser", "pagewire_"+platform.OS+"_"+platform.Arch+"*",
		"bin", "pagewire*")
	found, globErr := filepath.Glob(program)
	if err := errors.Join(err, globErr); err != nil || len(found) != 1 {
		return nil, errors.Join(err, fmt.Errorf("%s are %d programs: GoReleaser links one", program,
			len(found)))
	}
	return p.pack(manifest, []packed{
		{"icon.png", 0o644, "js/extension/icon-128.png"}, {"LICENSE", 0o644, "LICENSE"},
		{"THIRD-PARTY-LICENSES.txt", 0o644, "dist/stage/programs/THIRD-PARTY-LICENSES.txt"},
		{"server/" + filepath.Base(found[0]), 0o755, found[0]},
	})
}

// A packed is a file of a zip, and the path that it is from.
type packed struct {
	name string
	mode os.FileMode
	from string
}

// pack makes a zip of files, and of manifest.json unless that is empty. Its times are the commit's.
func (p plan) pack(manifest []byte, files []packed) ([]byte, error) {
	at, err := time.Parse(time.RFC3339, p.at)
	var out bytes.Buffer
	to := zip.NewWriter(&out)
	add := func(name string, mode os.FileMode, text []byte) error {
		header := &zip.FileHeader{Name: name, Method: zip.Deflate, Modified: at.UTC()}
		header.SetMode(mode)
		file, err := to.CreateHeader(header)
		if err == nil {
			_, err = file.Write(text)
		}
		return err
	}
	if len(manifest) > 0 {
		err = errors.Join(err, add("manifest.json", 0o644, manifest))
	}
	for _, file := range files {
		text, readErr := os.ReadFile(file.from)
		err = errors.Join(err, readErr, add(file.name, file.mode, text))
	}
	err = errors.Join(err, to.Close())
	return out.Bytes(), err
}

// bundleManifest has the command that a host starts, and the options that it asks its user for.
func bundleManifest(version string, platform commands.Platform) object {
	system, _ := platform.NPM()
	option := func(kind, title, description string, value any) object {
		return object{"type": kind, "title": title, "description": description, "required": false,
			"default": value}
	}
	return object{
		"manifest_version": "0.4", "name": "pagewire", "display_name": "Pagewire",
		"version": version, "description": about,
		"long_description": "Pages say what they can show and when it changes. Contents stay in the page until they are read.",
		"author":           object{"name": "Pagewire", "url": repository},
		"repository":       object{"type": "git", "url": repository}, "homepage": repository,
		"documentation": repository + "/tree/main/demo/docs", "support": repository + "/issues",
		"icon":    "icon.png",
		"license": "MIT", "keywords": []string{"browser", "webmcp", "resources", "live"},
		"server": object{"type": "binary", "entry_point": "server/pagewire", "mcp_config": object{
			"command": "${__dirname}/server/pagewire", "env": object{},
			"args": []string{"serve", "--launch=${user_config.launch}",
				"--chrome=${user_config.attach}", "--inject=${user_config.inject}"}}},
		"user_config": object{
			"launch": option("boolean", "Launch a browser",
				"Open a browser of the agent's own, with an empty profile", false),
			"attach": option("string", "Attach to your browser",
				"auto, or the DevTools address of a browser that runs, such as http://127.0.0.1:9222", ""),
			"inject": option("boolean", "Pages without Pagewire",
				"Let the agent see pages of that browser that lack Pagewire, too", false)},
		"tools": []object{{"name": "list_page_resources"}, {"name": "read_page_resource"},
			{"name": "wait_for_page_update"}},
		"tools_generated": true, "compatibility": object{"platforms": []string{system}},
		"privacy_policies": []string{},
	}
}
