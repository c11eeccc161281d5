// Package nativehost makes this program known to browsers as the host of the browser extension.
//
// A browser starts a native host that a manifest names: a file in a directory of the browser, or,
// on Windows, one that the registry names. The package writes, checks and removes that file. It
// never replaces a file that names another program unless that is forced, and removes only a file
// that names our extension.
package nativehost

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"github.com/pagewire/pagewire/bridge/cmd/internal/cli"
	"github.com/pagewire/pagewire/bridge/cmd/pagewire/clientconfig"
	"github.com/pagewire/pagewire/bridge/cmd/pagewire/clientconfig/files"
	"github.com/pagewire/pagewire/bridge/pages/extension"
)

// A knownBrowser looks for native hosts in a directory below the user's settings, and on Windows
// below HKCU\Software.
type knownBrowser struct {
	name, linux, mac, windows string
	firefox                   bool // its manifest has another format
}

// The places on Linux are tested with Chromium and Firefox. Those on macOS and Windows are as
// documented, and untested.
var knownBrowsers = []knownBrowser{
	{"Chrome", "google-chrome/NativeMessagingHosts", "Google/Chrome", `Google\Chrome`, false},
	{"Chromium", "chromium/NativeMessagingHosts", "Chromium", `Chromium`, false},
	{"Edge", "microsoft-edge/NativeMessagingHosts", "Microsoft Edge", `Microsoft\Edge`, false},
	{"Brave", "BraveSoftware/Brave-Browser/NativeMessagingHosts", "BraveSoftware/Brave-Browser",
		`BraveSoftware\Brave-Browser`, false},
	{"Firefox", "mozilla/native-messaging-hosts", "Mozilla", `Mozilla`, true},
}

// FileName is the name of the manifest.
const FileName = extension.HostName + ".json"

// A Place is where a browser looks for native hosts.
type Place struct {
	Browser string
	dir     string // of the file
	key     string // of the registry, on Windows
	firefox bool
}

// File is the path of the manifest.
func (h Place) File() string { return filepath.Join(h.dir, FileName) }

func places(p clientconfig.Places) (all []Place) {
	for _, b := range knownBrowsers {
		h := Place{Browser: b.name, firefox: b.firefox}
		switch p.GOOS {
		case "windows": // the keys name our own files; a key for a missing browser does no harm
			h.dir = filepath.Join(p.Home, "AppData", "Local", "Pagewire")
			if b.firefox {
				h.dir = filepath.Join(h.dir, b.name)
			}
			h.key = `HKCU\Software\` + b.windows + `\NativeMessagingHosts\` + extension.HostName
		case "darwin":
			h.dir = filepath.Join(p.Home, "Library", "Application Support", b.mac,
				"NativeMessagingHosts")
		default:
			if b.firefox { // older than 147; later versions use this directory too, if it exists
				all = append(all, Place{b.name,
					filepath.Join(p.Home, ".mozilla", "native-messaging-hosts"), "", true})
			}
			h.dir = filepath.Join(p.XDG(), b.linux)
		}
		all = append(all, h)
	}
	return all
}

// A manifest is the native messaging manifest. Chromium expects origins in it, and Firefox the ids
// of extensions.
type manifest struct {
	Name              string   `json:"name"`
	Description       string   `json:"description"`
	Path              string   `json:"path"`
	Type              string   `json:"type"`
	AllowedOrigins    []string `json:"allowed_origins,omitempty"`
	AllowedExtensions []string `json:"allowed_extensions,omitempty"`
}

// Host reads the manifest. It returns the program that it names, and reports whether it is for our
// extension.
func (h Place) Host() (program string, ours bool, err error) {
	text, err := files.Read(h.File())
	var m manifest
	if err != nil || json.Unmarshal(text, &m) != nil {
		return "", false, err
	}
	return m.Path, slices.Contains(m.AllowedExtensions, extension.FirefoxID) && h.firefox ||
		slices.Contains(m.AllowedOrigins, extension.ExtensionOrigin+"/") && !h.firefox, nil
}

func manifestFor(binary string, firefox bool) []byte {
	m := manifest{Name: extension.HostName, Description: "Pagewire: live page state for AI agents",
		Path: binary, Type: "stdio"}
	if firefox {
		m.AllowedExtensions = []string{extension.FirefoxID}
	} else {
		m.AllowedOrigins = []string{extension.ExtensionOrigin + "/"}
	}
	return []byte(cli.IndentedJSON(m))
}

// Used returns the places of browsers that have run here, or, if dir is set, of the browser with
// these profiles.
func Used(p clientconfig.Places, dir string) ([]Place, error) {
	switch {
	case dir != "" && p.GOOS == "windows":
		return nil, cli.Hint(
			errors.New("browsers on Windows look for native hosts in the registry, and not in a "+
				"directory"), "leave --user-data-dir out")
	case dir != "":
		dir, err := filepath.Abs(dir)
		return []Place{{Browser: dir, dir: filepath.Join(dir, "NativeMessagingHosts")}}, err
	}
	all := slices.DeleteFunc(places(p), func(h Place) bool {
		_, err := os.Stat(filepath.Dir(h.dir)) // where the browser keeps its profiles
		return err != nil && h.key == ""
	})
	if len(all) == 0 {
		return nil, cli.Hint(
			ErrNoBrowser,
			"start the browser once, or name its directory: --user-data-dir DIR")
	}
	return all, nil
}

// ErrNoBrowser is the error of Used if no browser has run here.
var ErrNoBrowser = errors.New(
	"none of Chrome, Chromium, Edge, Brave and Firefox has a profile here")

// Install writes the manifest, which names a program. Without force it must not name another.
func (h Place) Install(ctx context.Context, program string, force bool) error {
	change := &files.Change{Title: h.Browser}
	f, err := change.File(h.File())
	if err != nil {
		return err
	}
	isNew := f.Is == nil
	if f.Is = manifestFor(program, h.firefox); !isNew && f.Changed() && !force {
		return cli.Hint(fmt.Errorf("%s is there already, and names another program", h.File()),
			"nothing was written there; --force replaces it")
	}
	if _, err := change.Do(ctx); err != nil || h.key == "" {
		return err
	}
	if out, err := exec.CommandContext(ctx, "reg", "add", h.key, "/ve", "/t", "REG_SZ", "/d",
		h.File(), "/f").CombinedOutput(); err != nil {
		return fmt.Errorf("%s: reg add %s: %w: %s", h.Browser, h.key, err, cli.Plain(string(out)))
	}
	return nil
}

// ErrNone is the error of Uninstall if there is no manifest.
var ErrNone = errors.New("there is none")

// Uninstall removes the manifest.
func (h Place) Uninstall(ctx context.Context) error {
	if h.key != "" {
		// it fails if there is no key
		_ = exec.CommandContext(ctx, "reg", "delete", h.key, "/f").Run()
	}
	switch _, ours, err := h.Host(); {
	case errors.Is(err, fs.ErrNotExist):
		return ErrNone
	case err != nil:
		return err
	case !ours:
		return cli.Hint(fmt.Errorf("%s does not name our extension, and stays", h.File()),
			"remove it by hand")
	}
	return os.Remove(h.File())
}
