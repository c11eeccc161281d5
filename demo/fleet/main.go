// Command fleet shows a fleet on one machine: three nodes, a balancer in front of them, a service
// with two users, and for each user a page in a browser and a hosted agent. It prints what the
// agents see, kills the node that has a user's page (SIGKILL), and prints what the agents see then.
// One user also has an assistant without a connection, which webhooks wake.
//
// All traffic stays on loopback. The user's name in the URL stands in for a login, which a real
// service has. It is no part of the product, and never a way to deploy nodes.
//
//	go run ./demo/fleet           tell the story, then serve until interrupted
//	go run ./demo/fleet -once     tell the story, and end: status 0 if all of it happened
package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/pagewire/pagewire/bridge/testkit/issuertest"
	"github.com/pagewire/pagewire/bridge/testkit/webhooktest"
	"github.com/pagewire/pagewire/demo/step"
)

func main() {
	once := flag.Bool("once", false, "end after the story, with status 0 if all of it happened")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := step.Tell(func() { run(ctx, *once) })
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "fleet:", err)
		os.Exit(1)
	}
}

// dist and program are what make build has written.
const dist, program = "dist", "bin/pagewire-node"

// size is the number of nodes.
const size = 3

func run(ctx context.Context, once bool) {
	_, err := os.Stat(filepath.Join(dist, "pagewire.js"))
	step.Check(built(err))
	dir := step.Must(os.MkdirTemp("", "pagewire-fleet-"))
	defer os.RemoveAll(dir)
	before := step.Must(net.Listen("tcp", "127.0.0.1:0"))
	defer before.Close()
	public := "http://" + before.Addr().String()
	login := step.Must(issuertest.New("https://login.example", public))
	b := &balancer{}
	go http.Serve(before, b)
	assistant := webhooktest.New(public+"/mcp", login.Token("alice", "pages:read pages:events"))
	defer assistant.Close()
	defer func() {
		for _, n := range b.nodes {
			n.kill()
		}
	}()
	b.start(ctx, dir, public, login, assistant.CA)
	site := serveSite("ws"+strings.TrimPrefix(public, "http")+"/page", login)
	defer site.Close()
	at := "http://" + site.Addr().String()
	fmt.Printf("%-8s %d nodes, %s before them, and the service at %s\n", "fleet", len(b.nodes),
		public, at)
	s := &story{ctx: ctx, site: at, public: public, login: login, balancer: b, assistant: assistant}
	s.run()
	if !once {
		fmt.Println("\nIt goes on until it is interrupted.")
		<-ctx.Done()
	}
}

// built adds to an error what to do if a file of make build is missing.
func built(err error) error {
	if err != nil {
		err = fmt.Errorf("%w (run make build first)", err)
	}
	return err
}

type node struct {
	name          string
	listen, admin string
	cmd           *exec.Cmd
}

// start starts the nodes behind the balancer. Each joins the others, and has a copy of the store.
// ca is the authority of the assistant's receiver, which is on loopback.
func (b *balancer) start(ctx context.Context, dir, public string, login *issuertest.Issuer,
	ca []byte) {
	keys, secret := filepath.Join(dir, "keys.json"), filepath.Join(dir, "secret")
	storeKey, webhookCA := filepath.Join(dir, "store-key"), filepath.Join(dir, "webhook-ca.pem")
	config := filepath.Join(dir, "node.json")
	text := step.Must(json.Marshal(map[string]any{
		"public-url": public, "secret-file": secret, "drain": "2s", "store-key": storeKey,
		"webhook-ca": webhookCA, "webhook-allow": []string{"127.0.0.1/32"}, "issuers": []any{
			map[string]any{"issuer": login.Name, "tenant": "the service", "jwks": keys}}}))
	for name, text := range map[string][]byte{
		keys: login.Keys(), secret: []byte("the nodes of the demo\n"),
		config: text, storeKey: []byte(rand.Text() + rand.Text()), webhookCA: ca} {
		step.Check(os.WriteFile(name, text, 0o600))
	}
	cluster := step.FreeAddrs(size)
	for i := range size {
		addrs := step.FreeAddrs(2)
		n := &node{name: string(rune('A' + i)), listen: addrs[0], admin: addrs[1]}
		n.cmd = exec.CommandContext(ctx, program, "--config", config,
			"--listen", n.listen, "--admin", n.admin,
			"--cluster", cluster[i], "--name", n.name, "--store", filepath.Join(dir, n.name))
		for j, other := range cluster {
			if j != i {
				n.cmd.Args = append(n.cmd.Args, "--join", other)
			}
		}
		n.cmd.Stderr = step.Must(os.Create(filepath.Join(dir, n.name+".log")))
		step.Check(built(n.cmd.Start()))
		b.nodes = append(b.nodes, n)
	}
	step.Eventually("the nodes know each other", patience,
		func() bool { return b.all("pagewire_node_nodes", size) })
}

// all reports whether a metric has a value at all nodes.
func (b *balancer) all(metric string, value int) bool {
	return !slices.ContainsFunc(b.nodes, func(n *node) bool {
		return !strings.Contains(fetch("http://"+n.admin+"/metrics"),
			fmt.Sprintf("%s %d\n", metric, value))
	})
}

func (n *node) kill() {
	_ = n.cmd.Process.Kill() // it may have ended
	_ = n.cmd.Wait()
}

func fetch(url string) string {
	answer, err := http.Get(url)
	if err != nil {
		return ""
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		return ""
	}
	return string(text)
}

// patience bounds a step of the story.
const patience = 60 * time.Second
