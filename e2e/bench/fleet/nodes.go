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

	"github.com/pagewire/pagewire/bridge/gateway/fleet/tickets/issuertest"
)

// A cluster is some processes of pagewire-node.
type cluster struct {
	dir   string
	login *issuertest.Issuer
	nodes []*node
}

type node struct {
	listen, admin string
	cmd           *exec.Cmd
}

func startCluster(ctx context.Context, program string, size int) (*cluster, error) {
	return startClusterWith(ctx, program, size, nil)
}

// startClusterWith is startCluster for nodes that deliver webhooks to receivers of an authority, if there is one.
func startClusterWith(ctx context.Context, program string, size int, ca []byte) (*cluster, error) {
	dir, err := os.MkdirTemp("", "pagewire-bench-")
	if err != nil {
		return nil, err
	}
	login, err := issuertest.New("https://login.example", public)
	if err != nil {
		return nil, err
	}
	c := &cluster{dir: dir, login: login}
	config, err := json.Marshal(map[string]any{"public-url": public, "secret-file": dir + "/secret",
		"max-user-pages": 100_000, "log-level": "error",
		"issuers": []any{map[string]any{"issuer": login.Name, "jwks": dir + "/keys"}}})
	if err != nil {
		return nil, err
	}
	for name, text := range map[string][]byte{"secret": []byte("the nodes of a benchmark"), "keys": login.Keys(),
		"node.json": config, "store-key": []byte(strings.Repeat("k", 32)), "ca.pem": ca} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			return nil, err
		}
	}
	first := ""
	for range size {
		at, err := freeAddrs(3)
		if err != nil {
			return c, err
		}
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
		n.cmd = exec.CommandContext(ctx, program, args...)
		n.cmd.Stderr = os.Stderr
		if err := n.cmd.Start(); err != nil {
			return c, err
		}
		c.nodes = append(c.nodes, n)
	}
	return c, eventually("the nodes know each other", func() bool {
		for _, n := range c.nodes {
			if n.metric("pagewire_node_nodes") != float64(size) {
				return false
			}
		}
		return true
	})
}

func (c *cluster) end() {
	for _, n := range c.nodes {
		_ = n.cmd.Process.Kill() // it may have been killed
		_ = n.cmd.Wait()
	}
	_ = os.RemoveAll(c.dir)
}

func freeAddrs(count int) (list []string, err error) {
	for range count {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close()
		list = append(list, l.Addr().String())
	}
	return list, nil
}

// metric is one of a node's, or -1.
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
