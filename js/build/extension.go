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

// buildExtension completes dist/extension/, which Chromium loads unpacked, and
// dist/extension-firefox/. The two differ only in their manifests.
func buildExtension(root, dist, version string) error {
	from, out := filepath.Join(root, "js/extension"), filepath.Join(dist, "extension")
	var errs []error
	for name, path := range map[string]string{"page.js": "extension.page.js",
		"relay.js": "extension.relay.js"} {
		errs = append(errs, copyFile(filepath.Join(out, name), filepath.Join(dist, path)))
	}
	errs = append(errs, copyFiles(out, from, "*.html"), copyFiles(out, from, "*.png"))
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

// firefoxID is the extension's id in Firefox and for its native host. Chromium's id follows from
// the manifest's key.
const firefoxID = "extension@pagewire.github.io"

// firefoxManifest turns Chromium's manifest into Firefox's. Firefox has an event page in place of
// an extension's service worker. It has no DevTools panel, which needs the secret: in Firefox the
// secret is not kept. Content scripts in the page's world need Firefox 128.
func firefoxManifest(chromium []byte) ([]byte, error) {
	var manifest map[string]any
	if err := json.Unmarshal(chromium, &manifest); err != nil {
		return nil, err
	}
	for _, name := range []string{"key", "minimum_chrome_version", "version_name",
		"devtools_page"} {
		delete(manifest, name)
	}
	manifest["background"] = map[string]any{"scripts": []string{"worker.js"}}
	manifest["browser_specific_settings"] = map[string]any{"gecko": map[string]any{"id": firefoxID,
		"strict_min_version":          "128.0",
		"data_collection_permissions": map[string]any{"required": []string{"none"}}}}
	return json.MarshalIndent(manifest, "", "  ")
}

var manifestVersion = regexp.MustCompile(`"version": "[^"]*"`)

// extensionManifest is the manifest with the package's version. A browser takes only one to four
// numbers as a version. The part after a hyphen is only in version_name, which Chromium shows to
// people.
func extensionManifest(path, version string) ([]byte, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	number, _, _ := strings.Cut(version, "-")
	text = manifestVersion.ReplaceAll(text,
		[]byte(`"version": "`+number+`", "version_name": "`+version+`"`))
	if !json.Valid(text) || !bytes.Contains(text, []byte(`"version": "`+number+`"`)) {
		return nil, fmt.Errorf("%s: it is no JSON, or has no version", path)
	}
	return text, nil
}
