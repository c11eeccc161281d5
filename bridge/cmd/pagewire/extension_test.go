package main

import (
	"encoding/binary"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pagewire/pagewire/bridge/access"
	"github.com/pagewire/pagewire/bridge/cmd/pagewire/nativehost"
	"github.com/pagewire/pagewire/bridge/pages/extension"
	"github.com/pagewire/pagewire/bridge/testkit"
)

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

	if file := "/x/" + nativehost.FileName; !startedByBrowser([]string{file, extension.FirefoxID}) ||
		startedByBrowser([]string{file, "other@x"}) {
		t.Error("the arguments of Firefox are not known, or others are")
	}
	// The origin of another extension is no command.
	if status, _, errs := run("chrome-extension://aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa/"); status != exitUsage ||
		!strings.Contains(errs, "unknown command") {
		t.Errorf("another extension: status %d, %q", status, errs)
	}
}

// The secret goes also if the browser's profile has gone before it.
func TestUninstallWithoutABrowser(t *testing.T) {
	home := atHome(t)
	file := filepath.Join(home, "token")
	t.Setenv(access.TokenFileEnv, file)
	_, err := extension.MakeSecret(file)
	testkit.OK(t, err)
	if out, _ := done(t, "extension", "uninstall"); out != extension.SecretFile(file)+"\n" {
		t.Errorf("it prints %q", out)
	}
	if _, err := os.Lstat(extension.SecretFile(file)); err == nil {
		t.Error("the secret is still there")
	}
}
