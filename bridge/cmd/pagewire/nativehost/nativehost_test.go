package nativehost

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pagewire/pagewire/bridge/cmd/pagewire/clientconfig"
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
		for _, h := range places(clientconfig.Places{GOOS: goos, Home: "/home/ada", Env: none}) {
			got = append(got, strings.TrimPrefix(filepath.ToSlash(h.dir), "/home/ada/"))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q", goos, got)
		}
	}
	all, err := Used(clientconfig.Places{GOOS: "windows", Home: `C:\Users\ada`, Env: none}, "")
	if err != nil || len(all) != 5 ||
		all[0].key != `HKCU\Software\Google\Chrome\NativeMessagingHosts\com.pagewire.host` ||
		all[2].key != `HKCU\Software\Microsoft\Edge\NativeMessagingHosts\com.pagewire.host` ||
		all[4].key != `HKCU\Software\Mozilla\NativeMessagingHosts\com.pagewire.host` || all[4].dir == all[0].dir {
		t.Errorf("windows: %+v, %v", all, err)
	}
	if _, err := Used(clientconfig.Places{GOOS: "windows", Home: `C:\Users\ada`, Env: none}, `D:\profile`); err == nil {
		t.Error("a directory of profiles on Windows is no error, though no browser looks there")
	}
}
