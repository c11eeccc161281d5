// Package npmregistry serves, on loopback, the two npm packages that a release publishes for this
// platform: dist/npm and the program, both packed by npm. With npm_config_registry, npm install
// pagewire then does what it does after a release. It has no other package and asks no registry.
package npmregistry

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"

	"github.com/pagewire/pagewire/bridge/testkit/testcmd"
	"github.com/pagewire/pagewire/js/build/commands"
)

// Serve packs the packages of a repository's build into a directory, and returns the URL of the
// registry until stop is called.
func Serve(root, dir string) (url string, stop func(), err error) {
	own, _ := filepath.Abs(filepath.Join(root, "dist/npm"))
	program := filepath.Join(dir, "program")
	system, cpu := commands.Host.NPM()
	name := "pagewire"
	if system == "win32" {
		name += ".exe"
	}
	described, err := manifest(own)
	if err != nil {
		return "", nil, fmt.Errorf("%w (run make build)", err)
	}
	text, _ := json.Marshal(map[string]any{"name": commands.Host.Package(),
		"version": described["version"], "os": []string{system}, "cpu": []string{cpu}})
	code, err := os.ReadFile(filepath.Join(root, "bin/pagewire"))
	if err := errors.Join(err, os.MkdirAll(filepath.Join(program, "bin"), 0o755),
		os.WriteFile(filepath.Join(program, "package.json"), text, 0o644),
		os.WriteFile(filepath.Join(program, "bin", name), code, 0o755)); err != nil {
		return "", nil, err
	}
	packages := map[string]any{} // by path: npm escapes the slash of a name, which a ServeMux keeps
	files := http.FileServer(http.Dir(dir))
	s := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		if its, is := packages[r.URL.Path]; is {
			json.NewEncoder(out).Encode(its)
			return
		}
		files.ServeHTTP(out, r)
	}))
	for _, from := range []string{own, program} {
		out, err := testcmd.Command("npm", "pack", from, "--json", "--pack-destination", dir).Output()
		var packed []struct{ Name, Version, Filename, Integrity string }
		if err = errors.Join(err, json.Unmarshal(out, &packed)); err != nil {
			s.Close()
			return "", nil, fmt.Errorf("npm pack %s: %w", from, err)
		}
		described, err := manifest(from)
		if err != nil {
			s.Close()
			return "", nil, err
		}
		p := packed[0]
		described["dist"] = map[string]any{"tarball": s.URL + "/" + p.Filename,
			"integrity": p.Integrity}
		packages["/"+p.Name] = map[string]any{"name": p.Name,
			"dist-tags": map[string]any{"latest": p.Version},
			"versions":  map[string]any{p.Version: described}}
	}
	return s.URL, s.Close, nil
}

// manifest is the package.json of a directory.
func manifest(dir string) (described map[string]any, err error) {
	text, err := os.ReadFile(filepath.Join(dir, "package.json"))
	if err == nil {
		err = json.Unmarshal(text, &described)
	}
	return described, err
}
