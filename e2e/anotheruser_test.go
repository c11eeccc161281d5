package e2e

// Another user of the machine, with a uid of its own, and the binary as it is: what listens, what is in files, what is
// asked for.

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/pagewire/pagewire/bridge/testkit"
)

// as says what another user gets by a role, at an address or path, with a text to send.
func as(t *testing.T, role, at, text string) string {
	t.Helper()
	cmd := testkit.OtherUser(t, role, at)
	cmd.Stdin = strings.NewReader(text)
	out, _ := cmd.CombinedOutput() // what it fails with is in it
	return string(out)
}

func TestAnotherUserOfTheMachine(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("needs root: only root can run a process of another user")
	}
	h := newHome(t)
	// Everybody may come as far as the home, as in /home/ada of mode 0755: what keeps others out is ours.
	if err := os.Chmod(h.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	front := testkit.Addr(t)
	s := serve(t, page{
		tag:    `<script src="/pagewire.js" data-gateway="ws://` + h.hub + `"></script>`,
		script: `navigator.modelContext.registerResource({ uri: location.origin + "/a", name: "a", read: () => "the state of somebody's page" });`,
	})
	a := h.serve(t, "--http", front, "--stdio", "--no-token", "--launch", "--headless", "--open", s.URL)
	testkit.Eventually(t, "the page is there", func() bool { return a.Offers(s.URL + "/a") })
	if text, _ := a.Read(s.URL + "/a"); !strings.Contains(text, "somebody's") {
		t.Fatalf("the page reads %q", text)
	}
	cmd, log := h.command(t, "extension", "install", "--user-data-dir", filepath.Join(h.dir, "profile"))
	if err := cmd.Run(); err != nil {
		t.Fatalf("install: %v\n%s", err, log)
	}
	token, err := os.ReadFile(filepath.Join(h.dir, "pagewire", "token"))
	if err != nil {
		t.Fatal(err)
	}
	secret := strings.TrimSpace(string(token))
	attempts := 0
	gets := func(what, got string) {
		t.Helper()
		attempts++
		for _, no := range []string{"somebody's", s.URL + "/a", secret, "HTTP/1.1 1", "HTTP/1.1 2", "pagewire_"} {
			if strings.Contains(got, no) {
				t.Errorf("%s gets %s", what, got)
			}
		}
	}

	// The ports, with and without what it should not know.
	upgrade := "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: " +
		"AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Protocol: pagewire.v1\r\n"
	list := `{"jsonrpc":"2.0","id":1,"method":"resources/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`
	for _, addr := range []string{h.hub, front} {
		for _, path := range []string{"/mcp", "/page", "/feed", "/metrics", "/", "/healthz", "/session", "/ticket",
			"/status"} {
			for _, headers := range []string{"", "Authorization: Bearer " + secret + "\r\n",
				upgrade + "Origin: " + s.URL + "\r\n",
				upgrade + "Origin: chrome-extension://cfcnkimmciafamoogfahooifkmmegfho\r\n"} {
				request := fmt.Sprintf("POST %s HTTP/1.1\r\nHost: %s\r\nContent-Type: "+
					"application/json\r\nMcp-Protocol-Version: 2026-07-28\r\nMcp-Method: "+
					"resources/list\r\nContent-Length: %d\r\nConnection: close\r\n%s\r\n%s", path, addr, len(list),
					headers, list)
				if strings.Contains(headers, "Upgrade") {
					request = "GET " + path + " HTTP/1.1\r\nHost: " + addr + "\r\nConnection: Upgrade, close\r\n" +
						headers + "\r\n"
				}
				gets(addr+path, as(t, testkit.Dial, addr, request))
			}
		}
	}

	// The files and sockets of the user's directory.
	names, err := os.ReadDir(filepath.Join(h.dir, "pagewire"))
	if err != nil || len(names) < 3 {
		t.Fatalf("in the user's directory: %v, %v", names, err)
	}
	for _, e := range names {
		path := filepath.Join(h.dir, "pagewire", e.Name())
		got := as(t, testkit.Read, path, "")
		gets(path, got)
		if !strings.Contains(got, "permission denied") {
			t.Errorf("%s: %s", path, got)
		}
	}

	// It has changed nothing, and those whose it is go on.
	if text, err := a.Read(s.URL + "/a"); err != nil || !strings.Contains(text, "somebody's") {
		t.Errorf("the agent reads %q, %v", text, err)
	}
	a.cmd.Process.Signal(syscall.SIGTERM)
	a.Wait()
	for _, e := range names {
		gets("after serve, "+e.Name(), as(t, testkit.Read, filepath.Join(h.dir, "pagewire", e.Name()), ""))
	}
	t.Logf("%d attempts of another user: none got anything", attempts)
}
