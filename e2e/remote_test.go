//go:build remote

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pagewire/pagewire/bridge/desktop/browser"
	"github.com/pagewire/pagewire/bridge/testkit"
	"github.com/pagewire/pagewire/bridge/testkit/testcmd"
)

// A computer is a network namespace of its own: it has loopback, which no other has, and a cable to
// the other one.
type computer struct {
	t                   *testing.T
	name, address, home string
}

// computers makes two, with a cable between them.
func computers(t *testing.T) (here, there computer) {
	t.Helper()
	short := fmt.Sprint(os.Getpid())
	pair := []computer{{t, "here" + short, "10.77.0.1", t.TempDir()}, {t, "there" + short, "10.77.0.2", t.TempDir()}}
	for i, c := range pair {
		command(t, "", "ip", "netns", "add", c.name)
		t.Cleanup(func() { testcmd.Command("ip", "netns", "del", c.name).Run() })
		if i == 0 {
			continue
		}
		command(t, "", "ip", "link", "add", "pw"+short, "netns", pair[0].name, "type", "veth",
			"peer", "name", "pw"+short, "netns", c.name)
	}
	for _, c := range pair {
		command(t, "", "ip", "-n", c.name, "addr", "add", c.address+"/24", "dev", "pw"+short)
		command(t, "", "ip", "-n", c.name, "link", "set", "pw"+short, "up")
		command(t, "", "ip", "-n", c.name, "link", "set", "lo", "up")
	}
	return pair[0], pair[1]
}

// run is a command on the computer.
func (c computer) run(args ...string) *exec.Cmd {
	cmd := testcmd.CommandContext(c.t.Context(), "ip", append([]string{"netns", "exec", c.name}, args...)...)
	cmd.Env = append(os.Environ(), "HOME="+c.home, "XDG_CONFIG_HOME="+c.home)
	return cmd
}

// start runs a program there until the test ends.
func (c computer) start(args ...string) {
	c.t.Helper()
	cmd := c.run(args...)
	in, err := cmd.StdinPipe() // pagewire serve ends with it
	testkit.OK(c.t, err)
	log := new(testkit.Log)
	cmd.Stdout, cmd.Stderr = log, log
	testkit.OK(c.t, cmd.Start())
	c.t.Cleanup(func() {
		in.Close()
		cmd.Process.Kill()
		cmd.Wait()
		if c.t.Failed() {
			c.t.Logf("%s says: %s", strings.Join(args, " "), log)
		}
	})
}

// says waits until a command there prints a text.
func (c computer) says(want string, args ...string) {
	c.t.Helper()
	var out []byte
	testkit.Eventually(c.t, fmt.Sprintf("%s says %q", strings.Join(args, " "), want), func() bool {
		out, _ = c.run(args...).CombinedOutput()
		return strings.Contains(string(out), want)
	})
}

const remoteSite = `
import { createServer } from "node:http";
import { readFileSync } from "node:fs";
createServer(({ url }, answer) => {
  const port = url.slice(1);
  if (/^\d*$/.test(port)) {
    const load = port && '<script src="/pagewire.js" data-gateway="ws://127.0.0.1:' + port + '"></script><script>' +
      'document.modelContext.registerResource({ uri: location.origin + "/state/' + port + '", name: "Cart", read: () => "tea by ' + port + '" })</script>';
    answer.setHeader("content-type", "text/html");
    return answer.end("<!doctype html><title>Shop</title><p>Nothing of Pagewire's</p>" + load);
  }
  try {
    if (url.endsWith("js")) answer.setHeader("content-type", "text/javascript");
    answer.end(readFileSync(process.argv[1] + url));
  } catch {
    answer.writeHead(404).end();
  }
}).listen(9000, "127.0.0.1");`

// Each of the three ways of demo/docs/remote.md: the browser is on one computer, the agent on
// another, and OpenSSH between them. The ports are those of the page, since each computer has its
// own.
func TestRemote(t *testing.T) {
	here, there := computers(t)
	program, err := filepath.Abs("../bin/pagewire")
	testkit.OK(t, err)
	site, err := filepath.Abs(dist)
	testkit.OK(t, err)
	const shop = "http://127.0.0.1:9000/"

	here.start("node", "--input-type=module", "-e", remoteSite, site)
	chromium, err := browser.Find()
	testkit.OK(t, err)
	here.start(chromium, "--headless=new", "--no-sandbox", "--no-first-run", "--disable-gpu", "--user-data-dir="+t.TempDir(),
		"--remote-debugging-port=9222", "--disable-features=LocalNetworkAccessChecks", "about:blank")
	open := func(path string) {
		t.Helper()
		here.says(`"type": "page"`, "node", "-e", `fetch("http://127.0.0.1:9222/json/new?`+shop+path+
			`", { method: "PUT" }).then((r) => r.text()).then(console.log)`)
	}
	ssh := sshServer(t, here, there)

	t.Run("a forwarded port", func(t *testing.T) {
		there.start(program, "serve")
		open("7433") // before the port is there: the page tries again
		there.says("pages: 0", program, "doctor", "--json")
		there.says("no open page offers a resource", program, "ls")
		here.says("ECONNREFUSED", "node", "-e", // it listens on its own loopback alone
			`require("node:net").connect(7433, "`+there.address+`").on("error", (e) => console.log(e.code))`)
		here.start(append(ssh, "-N", "-L", "7433:127.0.0.1:7433", "-L", "7500:127.0.0.1:7433", there.address)...)
		open("7500")
		for _, port := range []string{"7433", "7500"} {
			there.says("tea by "+port, program, "read", shop+"state/"+port)
		}
	})
	t.Run("a forwarded browser", func(t *testing.T) {
		open("")
		here.start(append(ssh, "-N", "-R", "9222:127.0.0.1:9222", there.address)...)
		there.says("webSocketDebuggerUrl", "node", "-e",
			`fetch("http://127.0.0.1:9222/json/version").then((r) => r.text()).then(console.log, () => {})`)
		hub := []string{"--hub", "127.0.0.1:7434"}
		there.start(append([]string{program, "serve", "--chrome", "auto", "--shown", strings.TrimSuffix(shop, "/")}, hub...)...)
		there.says("Nothing of Pagewire's", append([]string{program, "read", shop + ".pagewire/shown"}, hub...)...)
	})
	t.Run("a forwarded gateway", func(t *testing.T) {
		here.start(program, "serve", "--hub", "127.0.0.1:7435", "--http", "127.0.0.1:8080")
		here.start(append(ssh, "-N", "-R", "8080:127.0.0.1:8080", there.address)...)
		token := filepath.Join(here.home, "pagewire", "token")
		var secret []byte
		testkit.Eventually(t, "a token", func() bool {
			secret, err = os.ReadFile(token)
			return err == nil
		})
		hello := `{ jsonrpc: "2.0", id: 1, method: "initialize", params: { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "a", version: "1" } } }`
		for bearer, status := range map[string]string{strings.TrimSpace(string(secret)): "200", "wrong": "401"} {
			there.says("status "+status, "node", "-e", `fetch("http://127.0.0.1:8080/mcp", { method: "POST", body: JSON.stringify(`+hello+
				`), headers: { authorization: "Bearer `+bearer+`", "content-type": "application/json", accept: "application/json, text/event-stream" } })`+
				`.then((r) => console.log("status " + r.status), () => {})`)
		}
	})
}

// sshServer runs OpenSSH's server on a computer, and returns the client's command line for the other
// one.
func sshServer(t *testing.T, from, to computer) []string {
	t.Helper()
	dir := t.TempDir()
	for _, key := range []string{"host", "key"} {
		command(t, dir, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key)
	}
	testkit.OK(t, os.MkdirAll("/run/sshd", 0o755)) // where Debian's expects it
	config := filepath.Join(dir, "sshd_config")
	testkit.OK(t, os.WriteFile(config, []byte("ListenAddress "+to.address+":2222\nHostKey "+dir+"/host\nAuthorizedKeysFile "+dir+
		"/key.pub\nPidFile none\nStrictModes no\nPermitRootLogin prohibit-password\nUsePAM no\n"), 0o600))
	to.start("/usr/sbin/sshd", "-D", "-e", "-f", config)
	ssh := []string{"ssh", "-p", "2222", "-l", "root", "-i", filepath.Join(dir, "key"), "-o", "StrictHostKeyChecking=no",
		"-o", "UserKnownHostsFile=" + dir + "/known", "-o", "ExitOnForwardFailure=yes"}
	from.says("answers", append(ssh, to.address, "echo", "answers")...)
	return ssh
}
