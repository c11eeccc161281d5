package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// buildExtension completes dist/extension/, which Chromium loads as it is, and dist/extension-firefox/, which differs by its
// manifest alone.
func buildExtension(root, dist, version string) error {
	from, out := filepath.Join(root, "js/extension"), filepath.Join(dist, "extension")
	var errs []error
	for name, path := range map[string]string{"page.js": "extension.page.js", "relay.js": "extension.relay.js"} {
		errs = append(errs, copyFile(filepath.Join(out, name), filepath.Join(dist, path)))
	}
	for _, name := range []string{"popup.html", "options.html", "devtools.html", "panel.html", "icon-16.png", "icon-32.png", "icon-128.png"} {
		errs = append(errs, copyFile(filepath.Join(out, name), filepath.Join(from, name)))
	}
	manifest, err := extensionManifest(filepath.Join(from, "manifest.json"), version)
	if err == nil {
		err = os.WriteFile(filepath.Join(out, "manifest.json"), manifest, 0o644)
	}
	if err := errors.Join(append(errs, err)...); err != nil {
		return err
	}
	forFirefox := filepath.Join(dist, "extension-firefox")
	manifest, err = firefoxManifest(manifest)
	if err == nil {
		err = errors.Join(os.RemoveAll(forFirefox), os.CopyFS(forFirefox, os.DirFS(out)))
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(forFirefox, "manifest.json"), manifest, 0o644)
	}
	return err
}

// firefoxID is what Firefox knows the extension by, and its native host it by; Chromium's follows from the manifest's
// key.
const firefoxID = "extension@pagewire.github.io"

// firefoxManifest makes Firefox's of Chromium's: an event page instead of a service worker, which Firefox has not for
// extensions. The panel of DevTools needs the secret, which Firefox does not keep. From 128 on Firefox runs content scripts in the page's world.
func firefoxManifest(chromium []byte) ([]byte, error) {
	var manifest map[string]any
	if err := json.Unmarshal(chromium, &manifest); err != nil {
		return nil, err
	}
	for _, name := range []string{"key", "minimum_chrome_version", "version_name", "devtools_page"} {
		delete(manifest, name)
	}
	manifest["background"] = map[string]any{"scripts": []string{"worker.js"}}
	manifest["browser_specific_settings"] = map[string]any{"gecko": map[string]any{"id": firefoxID,
		"strict_min_version": "128.0", "data_collection_permissions": map[string]any{"required": []string{"none"}}}}
	return json.MarshalIndent(manifest, "", "  ")
}

var manifestVersion = regexp.MustCompile(`"version": "[^"]*"`)

// extensionManifest is the manifest with the package's version. A browser wants one to four numbers: what follows a
// hyphen is in version_name alone, which Chromium shows to people.
func extensionManifest(path, version string) ([]byte, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	number, _, _ := strings.Cut(version, "-")
	text = manifestVersion.ReplaceAll(text, []byte(`"version": "`+number+`", "version_name": "`+version+`"`))
	if !json.Valid(text) || !bytes.Contains(text, []byte(`"version": "`+number+`"`)) {
		return nil, fmt.Errorf("%s: it is no JSON, or has no version", path)
	}
	return text, nil
}
