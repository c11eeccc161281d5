package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/pagewire/pagewire/bridge/access"
	"github.com/pagewire/pagewire/bridge/agents"
	"github.com/pagewire/pagewire/bridge/cmd/pagewire/clientconfig"
	"github.com/pagewire/pagewire/bridge/desktop/daemon"
	"github.com/pagewire/pagewire/bridge/desktop/serve"
	"github.com/pagewire/pagewire/bridge/pages/extension"
)

// A knownBrowser looks for native hosts in a directory below the user's settings, and on Windows below HKCU\Software.
type knownBrowser struct {
	name, linux, mac, windows string
	firefox                   bool // its manifest has another format
}

// The places on Linux are tested with Chromium and Firefox. Those on macOS and Windows are as documented, and untested.
var knownBrowsers = []knownBrowser{
	{"Chrome", "google-chrome/NativeMessagingHosts", "Google/Chrome", `Google\Chrome`, false},
	{"Chromium", "chromium/NativeMessagingHosts", "Chromium", `Chromium`, false},
	{"Edge", "microsoft-edge/NativeMessagingHosts", "Microsoft Edge", `Microsoft\Edge`, false},
	{"Brave", "BraveSoftware/Brave-Browser/NativeMessagingHosts", "BraveSoftware/Brave-Browser",
		`BraveSoftware\Brave-Browser`, false},
	{"Firefox", "mozilla/native-messaging-hosts", "Mozilla", `Mozilla`, true},
}

const hostFile = extension.HostName + ".json"

// A hostPlace is the place where a browser looks for native hosts.
type hostPlace struct {
	browser string
	dir     string // of the file
	key     string // of the registry, on Windows
	firefox bool
}

func (h hostPlace) file() string { return filepath.Join(h.dir, hostFile) }

func hostPlaces(p clientconfig.Places) (all []hostPlace) {
	for _, b := range knownBrowsers {
		h := hostPlace{browser: b.name, firefox: b.firefox}
		switch p.GOOS {
		case "windows": // the keys name our own files; a key for a missing browser does no harm
			h.dir = filepath.Join(p.Home, "AppData", "Local", "Pagewire")
			if b.firefox {
				h.dir = filepath.Join(h.dir, b.name)
			}
			h.key = `HKCU\Software\` + b.windows + `\NativeMessagingHosts\` + extension.HostName
		case "darwin":
			h.dir = filepath.Join(p.Home, "Library", "Application Support", b.mac, "NativeMessagingHosts")
		default:
			if b.firefox { // older than 147; later versions use this directory too, if it exists
				all = append(all, hostPlace{b.name, filepath.Join(p.Home, ".mozilla", "native-messaging-hosts"), "", true})
			}
			h.dir = filepath.Join(p.XDG(), b.linux)
		}
		all = append(all, h)
	}
	return all
}

// hostManifest is the native messaging manifest. Chromium expects origins in it, and Firefox the ids of extensions.
type hostManifest struct {
	Name              string   `json:"name"`
	Description       string   `json:"description"`
	Path              string   `json:"path"`
	Type              string   `json:"type"`
	AllowedOrigins    []string `json:"allowed_origins,omitempty"`
	AllowedExtensions []string `json:"allowed_extensions,omitempty"`
}

// manifest reads the browser's manifest, and reports whether it names our extension.
func (h hostPlace) manifest() (m hostManifest, ours bool, err error) {
	text, err := clientconfig.Read(h.file())
	if err != nil || json.Unmarshal(text, &m) != nil {
		return m, false, err
	}
	return m, slices.Contains(m.AllowedExtensions, extension.FirefoxID) && h.firefox ||
		slices.Contains(m.AllowedOrigins, extension.ExtensionOrigin+"/") && !h.firefox, nil
}

func manifestFor(binary string, firefox bool) []byte {
	m := hostManifest{Name: extension.HostName, Description: "Pagewire: live page state for AI agents", Path: binary,
		Type: "stdio"}
	if firefox {
		m.AllowedExtensions = []string{extension.FirefoxID}
	} else {
		m.AllowedOrigins = []string{extension.ExtensionOrigin + "/"}
	}
	return []byte(indentedJSON(m))
}

func extensionCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "extension",
		Short: "Let the browser extension reach agents",
		Long: "The browser extension shows agents the pages of every site that the user allows. A browser starts this\n" +
			"program for the extension if a file names it. install writes that file for each browser.",
		Example: "  pagewire extension install",
		RunE:    func(cmd *cobra.Command, args []string) error { return cmd.Help() },
		Args:    noArguments,
	}
	var dir string
	var force bool
	install := &cobra.Command{
		Use:   "install",
		Short: "Make this program known to browsers as the extension's native host",
		Long: "Writes a file for each of Chrome, Chromium, Edge, Brave and Firefox that is installed, and prints its\n" +
			"path. Only our extension may start the host. It also makes the secret by which the extension and your\n" +
			"gateways recognize each other.",
		Example: "  pagewire extension install",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, args []string) error {
			binary, err := os.Executable()
			if err == nil {
				binary, err = filepath.EvalSymlinks(binary)
			}
			if err != nil {
				return fmt.Errorf("find the path of this program: %w", err)
			}
			file, err := access.TokenFile()
			if err == nil {
				_, err = extension.MakeSecret(file)
			}
			if err != nil {
				return err
			}
			return forHosts(cmd, dir, func(h hostPlace) error { return h.install(cmd, binary, force) })
		},
	}
	install.Flags().BoolVar(&force, "force", false, "replace a file that names another program")
	uninstall := &cobra.Command{
		Use:     "uninstall",
		Short:   "Remove what install has written",
		Example: "  pagewire extension uninstall",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := forHosts(cmd, dir, func(h hostPlace) error { return h.uninstall(cmd) }); err != nil || dir != "" {
				return err // other browsers may go on
			}
			return removeSecret(cmd)
		},
	}
	for _, c := range []*cobra.Command{install, uninstall} {
		c.Flags().StringVar(&dir, "user-data-dir", "", "only for the Chromium that runs with this `directory` of "+
			"profiles")
	}
	cmd.AddCommand(install, uninstall)
	return cmd
}

// removeSecret removes the secret. It keeps a file with other content, which is not ours: the secret is in the token's
// directory, and that can be any directory.
func removeSecret(cmd *cobra.Command) error {
	file, err := access.TokenFile()
	if err != nil {
		return err
	}
	secret := extension.SecretFile(file)
	if _, err := os.Lstat(secret); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if _, err := extension.Secret(file); err != nil {
		return err
	}
	return remove(cmd, secret)
}

// usedPlaces returns the places of browsers that have run here, or, if dir is set, of the browser with these profiles.
func usedPlaces(p clientconfig.Places, dir string) ([]hostPlace, error) {
	switch {
	case dir != "" && p.GOOS == "windows":
		return nil, hintError{errors.New("browsers on Windows look for native hosts in the registry, and not in a " +
			"directory"), "leave --user-data-dir out"}
	case dir != "":
		dir, err := filepath.Abs(dir)
		return []hostPlace{{browser: dir, dir: filepath.Join(dir, "NativeMessagingHosts")}}, err
	}
	all := slices.DeleteFunc(hostPlaces(p), func(h hostPlace) bool {
		_, err := os.Stat(filepath.Dir(h.dir)) // where the browser keeps its profiles
		return err != nil && h.key == ""
	})
	if len(all) == 0 {
		return nil, hintError{errors.New("none of Chrome, Chromium, Edge, Brave and Firefox has a profile here"),
			"start the browser once, or name its directory: --user-data-dir DIR"}
	}
	return all, nil
}

func forHosts(cmd *cobra.Command, dir string, do func(hostPlace) error) error {
	p, err := clientconfig.Here()
	if err != nil {
		return err
	}
	all, err := usedPlaces(p, dir)
	if err != nil {
		return err
	}
	return interruptible(cmd.Context(), func() error {
		var errs []error
		for _, h := range all {
			errs = append(errs, do(h))
		}
		return errors.Join(errs...)
	})
}

func (h hostPlace) install(cmd *cobra.Command, binary string, force bool) error {
	change := &clientconfig.Change{Title: h.browser}
	f, err := change.File(h.file())
	if err != nil {
		return err
	}
	isNew := f.Is == nil
	if f.Is = manifestFor(binary, h.firefox); !isNew && f.Changed() && !force {
		return hintError{fmt.Errorf("%s is there already, and names another program", h.file()),
			"nothing was written there; --force replaces it"}
	}
	if _, err := change.Do(cmd.Context()); err != nil {
		return err
	}
	if h.key != "" {
		if out, err := exec.CommandContext(cmd.Context(), "reg", "add", h.key, "/ve", "/t", "REG_SZ", "/d", h.file(),
			"/f").CombinedOutput(); err != nil {
			return fmt.Errorf("%s: reg add %s: %w: %s", h.browser, h.key, err, plain(string(out)))
		}
	}
	_, err = fmt.Fprintln(cmd.OutOrStdout(), h.file())
	return err
}

func (h hostPlace) uninstall(cmd *cobra.Command) error {
	if h.key != "" {
		_ = exec.CommandContext(cmd.Context(), "reg", "delete", h.key, "/f").Run() // it fails if there is no key
	}
	switch _, ours, err := h.manifest(); {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !ours:
		return hintError{fmt.Errorf("%s does not name our extension, and stays", h.file()), "remove it by hand"}
	}
	return remove(cmd, h.file())
}

// remove removes a file, and prints its path if it existed.
func remove(cmd *cobra.Command, path string) error {
	err := os.Remove(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		_, err = fmt.Fprintln(cmd.OutOrStdout(), path)
	}
	return err
}

// checkExtension checks that a browser can start the native host.
func checkExtension(context.Context, checkup) finding {
	p, err := clientconfig.Here()
	if err != nil {
		return warn(err.Error(), "set HOME")
	}
	all, err := usedPlaces(p, "")
	if err != nil {
		return ok("no browser here has a profile: the extension is not in use")
	}
	var known []string
	for _, h := range all {
		m, ours, err := h.manifest()
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return fail(err.Error(), "mend that, and then: pagewire extension install")
		case !ours:
			return fail(h.file()+" does not name our extension", "pagewire extension install --force")
		}
		if info, err := os.Stat(m.Path); err != nil || info.IsDir() {
			return fail(fmt.Sprintf("%s names %s, which is not there", h.file(), m.Path),
				"pagewire extension install --force")
		}
		known = append(known, h.browser)
	}
	if len(known) == 0 {
		return warn("no browser knows the extension's native host: pages of the extension do not reach agents",
			"pagewire extension install")
	}
	return ok(fmt.Sprintf("known to %q", known))
}

// hubEnv names the environment variable that replaces --hub, since the browser chooses the arguments of a native host.
const hubEnv = "PAGEWIRE_HUB"

// startedByBrowser reports whether a browser gave these arguments to a native host. They are the extension's origin,
// and on Windows a window. From Firefox they are the manifest's file and the extension's id.
func startedByBrowser(args []string) bool {
	return len(args) > 0 && args[0] == extension.ExtensionOrigin+"/" ||
		len(args) == 2 && args[1] == extension.FirefoxID && filepath.Base(args[0]) == hostFile
}

// nativeHostCommand is hidden, since only browsers start it, and its messages are binary.
func nativeHostCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "native-host",
		Short: "Serve the pages of the browser extension (started by the browser)",
		Long: "The browser starts this for the extension, and speaks with it on standard input and output. It\n" +
			"passes the extension's pages to the daemon that runs. " + hubEnv + " and " + access.TokenFileEnv + " stand for the flags.",
		Example: "  pagewire extension install",
		Hidden:  true,
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, args []string) error {
			surviveClosedOutput()
			err := runNativeHost(cmd)
			if err != nil && !errors.Is(err, context.Canceled) {
				extension.Fail(cmd.OutOrStdout(), err.Error())
				return err
			}
			return nil
		},
	}
}

// runNativeHost serves until the browser closes its input, or exits.
func runNativeHost(cmd *cobra.Command) error {
	addr := os.Getenv(hubEnv)
	if addr == "" {
		addr = serve.DefaultHub
	}
	log := slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), nil))
	secret := ""
	file, err := access.TokenFile()
	if err == nil {
		secret, err = extension.MakeSecret(file) // install has made it, unless an older version was installed
	}
	if err != nil {
		log.Warn("the extension is told no secret, and cannot do without this process", "error", err)
	}
	ctx, stop := agents.Orphaned(cmd.Context())
	defer stop()
	return extension.Serve(ctx, cmd.InOrStdin(), cmd.OutOrStdout(), extension.Options{
		Connect: func(ctx context.Context) (net.Conn, error) { return serve.Connect(ctx, addr, versionName()) },
		Wait:    func(ctx context.Context) error { return daemon.Wait(ctx, addr) },
		Version: versionName(), Secret: secret, Log: log,
	})
}
