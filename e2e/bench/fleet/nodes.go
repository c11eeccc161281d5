package main

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/pagewire/pagewire/bridge/testkit/issuertest"
	"github.com/pagewire/pagewire/bridge/testkit/testcmd"
)

// A cluster is several processes of pagewire-node.
type cluster struct {
	dir   string
	login *issuertest.Issuer
	nodes []*node
}

type node struct {
	listen, admin string
	cmd           *exec.Cmd
}

// startCluster starts nodes. If ca is not nil, they deliver webhooks to receivers with a certificate of that authority.
func startCluster(ctx context.Context, program string, size int, ca []byte) *cluster {
	dir := must(os.MkdirTemp("", "pagewire-bench-"))
	login := must(issuertest.New("https://login.example", public))
	c := &cluster{dir: dir, login: login}
	defer func() {
		if f := recover(); f != nil {
			c.close()
			panic(f)
		}
	}()
	config := must(json.Marshal(map[string]any{"public-url": public, "secret-file": dir + "/secret",
		"max-user-pages": 100_000, "log-level": "error",
		"issuers": []any{map[string]any{"issuer": login.Name, "jwks": dir + "/keys"}}}))
	for name, text := range map[string][]byte{"secret": []byte("the nodes of a benchmark"), "keys": login.Keys(),
		"node.json": config, "store-key": []byte(strings.Repeat("k", 32)), "ca.pem": ca} {
		check(os.WriteFile(filepath.Join(dir, name), text, 0o600))
	}
	first := ""
	for range size {
		at := freeAddrs(3)
		n := &node{listen: at[0], admin: at[1]}
		args := []string{"--config", dir + "/node.json", "--listen", at[0], "--admin", at[1], "--cluster", at[2]}
		if ca != nil {
			args = append(args, "--store-key", dir+"/store-key", "--webhook-ca", dir+"/ca.pem", "--webhook-allow", "127.0.0.0/8")
		}
		if first == "" {
			if first = at[2]; ca != nil {
				args = append(args, "--store", dir+"/store", "--name", "first")
			}
		} else {
			args = append(args, "--join", first)
		}
		n.cmd = testcmd.CommandContext(ctx, program, args...)
		n.cmd.Stderr = os.Stderr
		check(n.cmd.Start())
		c.nodes = append(c.nodes, n)
	}
	eventually("the nodes know each other", func() bool {
		for _, n := range c.nodes {
			if n.metric("pagewire_node_nodes") != float64(size) {
				return false
			}
		}
		return true
	})
	return c
}

func (c *cluster) close() {
	for _, n := range c.nodes {
		_ = n.cmd.Process.Kill() // the benchmark may have killed it
		_ = n.cmd.Wait()
	}
	_ = os.RemoveAll(c.dir)
}

func freeAddrs(count int) (list []string) {
	for range count {
		l := must(net.Listen("tcp", "127.0.0.1:0"))
		defer l.Close()
		list = append(list, l.Addr().String())
	}
	return list
}

// metric returns a metric of the node, or -1.
func (n *node) metric(name string) float64 {
	r, err := http.Get("http://" + n.admin + "/metrics")
	if err != nil {
		return -1
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil {
		return -1
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			v, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
			if err == nil {
				return v
			}
		}
	}
	return -1
}
