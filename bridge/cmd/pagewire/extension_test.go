package main

import (
	"encoding/binary"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/pagewire/pagewire/bridge/gateway/access"
	"github.com/pagewire/pagewire/bridge/gateway/pages/extension"
	"github.com/pagewire/pagewire/bridge/testkit"
)

// home makes an empty home directory the test's.
func home(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("HOME", dir)
	t.Setenv("XDG_CONFIG_HOME", "")
	return dir
}

func TestExtensionInstallIsForTheBrowsersThatAreThere(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the directories are those of Linux")
	}
	dir := home(t)
	status, _, errs := run("extension", "install")
	if status != exitFailed || !strings.Contains(errs, "none of Chrome, Chromium, Edge, Brave and Firefox has a "+
		"profile here\npagewire: start the browser once") {
		t.Errorf("without a browser: status %d, %q", status, errs)
	}
	for _, name := range []string{"chromium", "BraveSoftware/Brave-Browser"} {
		if err := os.MkdirAll(filepath.Join(dir, ".config", name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	var want []string
	for _, name := range []string{"chromium", "BraveSoftware/Brave-Browser"} {
		want = append(want, filepath.Join(dir, ".config", name, "NativeMessagingHosts", extension.HostName+".json"))
	}
	for range 2 { // the second time there is nothing to do
		status, out, errs := run("extension", "install")
		if status != exitDone || errs != "" || !slices.Equal(strings.Fields(out), want) {
			t.Fatalf("status %d, %q, %q; want %q", status, out, errs, want)
		}
	}
	secret := filepath.Join(dir, ".config", "pagewire", "extension")
	if info, err := os.Stat(secret); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the extension's secret: %v, %v", info, err)
	}
	text, err := os.ReadFile(want[0])
	if err != nil {
		t.Fatal(err)
	}
	var m hostManifest
	if err := json.Unmarshal(text, &m); err != nil {
		t.Fatal(err)
	}
	self, _ := os.Executable()
	if self, err = filepath.EvalSymlinks(self); err != nil {
		t.Fatal(err)
	}
	if m.Path != self || m.Type != "stdio" || m.Name != extension.HostName ||
		!slices.Equal(m.AllowedOrigins, []string{"chrome-extension://" + extension.ExtensionID + "/"}) {
		t.Errorf("the browser is told %+v", m)
	}

	if err := os.WriteFile(want[0], []byte(`{"path": "/elsewhere"}`), 0o644); err != nil {
		t.Fatal(err)
	}
	if f := checkExtension(t.Context(), checkup{}); f.Status != "fail" {
		t.Errorf("a file that is not ours: %+v", f)
	}
	if status, _, errs := run("extension", "install"); status != exitFailed ||
		!strings.Contains(errs, "names another program") || !strings.Contains(errs, "--force") {
		t.Errorf("in the way: status %d, %q", status, errs)
	}
	if status, _, errs := run("extension", "install", "--force"); status != exitDone {
		t.Errorf("--force: status %d, %q", status, errs)
	}
	if f := checkExtension(t.Context(), checkup{}); f.Status != "ok" || !strings.Contains(f.Says, `"Chromium" "Brave"`) {
		t.Errorf("installed: %+v", f)
	}
	if status, out, _ := run("extension", "uninstall"); status != exitDone ||
		!slices.Equal(strings.Fields(out), append(want, secret)) {
		t.Errorf("uninstall: status %d, %q", status, out)
	}
	if status, out, _ := run("extension", "uninstall"); status != exitDone || out != "" {
		t.Errorf("uninstall again: status %d, %q", status, out)
	}
	if f := checkExtension(t.Context(), checkup{}); f.Status != "warn" {
		t.Errorf("not installed: %+v", f)
	}
}

// Firefox has a manifest of its own, and starts the host with other arguments.
func TestExtensionInstallForFirefox(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the directories are those of Linux")
	}
	for _, place := range []string{".mozilla", ".config/mozilla"} {
		dir := home(t)
		if err := os.MkdirAll(filepath.Join(dir, place), 0o755); err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(dir, place, "native-messaging-hosts", extension.HostName+".json")
		if status, out, errs := run("extension", "install"); status != exitDone || out != file+"\n" {
			t.Fatalf("%s: status %d, %q, %q", place, status, out, errs)
		}
		text, err := os.ReadFile(file)
		var m hostManifest
		if err == nil {
			err = json.Unmarshal(text, &m)
		}
		if err != nil || m.AllowedOrigins != nil || !slices.Equal(m.AllowedExtensions, []string{extension.FirefoxID}) {
			t.Errorf("%s: Firefox is told %s, %v", place, text, err)
		}
		if f := checkExtension(t.Context(), checkup{}); f.Status != "ok" || !strings.Contains(f.Says, `"Firefox"`) {
			t.Errorf("installed: %+v", f)
		}
		if !startedByBrowser([]string{file, extension.FirefoxID}) || startedByBrowser([]string{file, "other@x"}) {
			t.Error("the arguments of Firefox are not known, or others are")
		}
	}
}

func TestExtensionPlacesOfTheSystems(t *testing.T) {
	none := func(string) string { return "" }
	for goos, want := range map[string][]string{
		"linux": {".config/google-chrome/NativeMessagingHosts", ".config/chromium/NativeMessagingHosts",
			".config/microsoft-edge/NativeMessagingHosts",
			".config/BraveSoftware/Brave-Browser/NativeMessagingHosts", ".mozilla/native-messaging-hosts",
			".config/mozilla/native-messaging-hosts"},
		"darwin": {"Library/Application Support/Google/Chrome/NativeMessagingHosts",
			"Library/Application Support/Chromium/NativeMessagingHosts",
			"Library/Application Support/Microsoft Edge/NativeMessagingHosts",
			"Library/Application Support/BraveSoftware/Brave-Browser/NativeMessagingHosts",
			"Library/Application Support/Mozilla/NativeMessagingHosts"},
	} {
		var got []string
		for _, h := range hostPlaces(places{goos, "/home/ada", none}) {
			got = append(got, strings.TrimPrefix(filepath.ToSlash(h.dir), "/home/ada/"))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q", goos, got)
		}
	}
	all, err := usedPlaces(places{"windows", `C:\Users\ada`, none}, "")
	if err != nil || len(all) != 5 ||
		all[0].key != `HKCU\Software\Google\Chrome\NativeMessagingHosts\com.pagewire.host` ||
		all[2].key != `HKCU\Software\Microsoft\Edge\NativeMessagingHosts\com.pagewire.host` ||
		all[4].key != `HKCU\Software\Mozilla\NativeMessagingHosts\com.pagewire.host` || all[4].dir == all[0].dir {
		t.Errorf("windows: %+v, %v", all, err)
	}
	if _, err := usedPlaces(places{"windows", `C:\Users\ada`, none}, `D:\profile`); err == nil {
		t.Error("a directory of profiles on Windows is no error, though no browser looks there")
	}
}

// A browser starts the binary with the extension's origin and nothing else, and ends its input when it has enough.
func TestABrowserStartsTheNativeHost(t *testing.T) {
	home(t)
	addr := testkit.Addr(t)
	t.Setenv(hubEnv, addr)
	t.Setenv(access.TokenFileEnv, tokenFile(t))
	in, browser := io.Pipe()
	out, host := io.Pipe()
	var errs strings.Builder
	status := make(chan int, 1)
	go func() {
		status <- pagewire(t.Context(), []string{"chrome-extension://" + extension.ExtensionID + "/",
			"--parent-window=0"}, in, host, &errs)
		host.Close()
	}()
	var length [4]byte
	if _, err := io.ReadFull(out, length[:]); err != nil {
		t.Fatal(err)
	}
	hello := make([]byte, binary.NativeEndian.Uint32(length[:]))
	if _, err := io.ReadFull(out, hello); err != nil || !strings.Contains(string(hello), `"type":"hello"`) ||
		!strings.Contains(string(hello), `"secret":"`) {
		t.Fatalf("%v, %s", err, hello)
	}
	browser.Close()
	if got := testkit.Receive(t, "the host ends with its input", status); got != exitDone {
		t.Errorf("status %d, %s", got, errs.String())
	}

	// Another extension's origin is no command.
	if status, _, errs := run("chrome-extension://aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa/"); status != exitUsage ||
		!strings.Contains(errs, "unknown command") {
		t.Errorf("another extension: status %d, %q", status, errs)
	}
}
