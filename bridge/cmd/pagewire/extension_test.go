package main

import (
	"encoding/binary"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pagewire/pagewire/bridge/access"
	"github.com/pagewire/pagewire/bridge/cmd/pagewire/clientconfig"
	"github.com/pagewire/pagewire/bridge/pages/extension"
	"github.com/pagewire/pagewire/bridge/testkit"
)

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
		for _, h := range hostPlaces(clientconfig.Places{GOOS: goos, Home: "/home/ada", Env: none}) {
			got = append(got, strings.TrimPrefix(filepath.ToSlash(h.dir), "/home/ada/"))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q", goos, got)
		}
	}
	all, err := usedPlaces(clientconfig.Places{GOOS: "windows", Home: `C:\Users\ada`, Env: none}, "")
	if err != nil || len(all) != 5 ||
		all[0].key != `HKCU\Software\Google\Chrome\NativeMessagingHosts\com.pagewire.host` ||
		all[2].key != `HKCU\Software\Microsoft\Edge\NativeMessagingHosts\com.pagewire.host` ||
		all[4].key != `HKCU\Software\Mozilla\NativeMessagingHosts\com.pagewire.host` || all[4].dir == all[0].dir {
		t.Errorf("windows: %+v, %v", all, err)
	}
	if _, err := usedPlaces(clientconfig.Places{GOOS: "windows", Home: `C:\Users\ada`, Env: none}, `D:\profile`); err == nil {
		t.Error("a directory of profiles on Windows is no error, though no browser looks there")
	}
}

// A browser starts the binary with the extension's origin first, and closes the input when it no longer needs the host.
func TestABrowserStartsTheNativeHost(t *testing.T) {
	atHome(t)
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

	if file := "/x/" + hostFile; !startedByBrowser([]string{file, extension.FirefoxID}) ||
		startedByBrowser([]string{file, "other@x"}) {
		t.Error("the arguments of Firefox are not known, or others are")
	}
	// The origin of another extension is no command.
	if status, _, errs := run("chrome-extension://aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa/"); status != exitUsage ||
		!strings.Contains(errs, "unknown command") {
		t.Errorf("another extension: status %d, %q", status, errs)
	}
}
