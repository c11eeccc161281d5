package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"github.com/pagewire/pagewire/bridge/testkit"
	"github.com/pagewire/pagewire/bridge/testkit/testcmd"
)

// An agent is a program that serves MCP on its standard input and output, and the driver that sends
// it requests. The driver writes one JSON-RPC message on a line and uses no SDK. It is the same for
// all programs.
type agent struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	log *testkit.Log
	// told has a token when a resource has been updated.
	told chan struct{}
	// updates has the URIs of the last updates, without those that nobody has taken in time.
	updates chan string

	mu      sync.Mutex
	last    int
	waiting map[int]chan answer
	ended   chan struct{}
}

type answer struct {
	Result json.RawMessage
	Error  *struct{ Message string }
}

func startAgent(ctx context.Context, env []string, path string, args ...string) (*agent, error) {
	a := &agent{cmd: testcmd.CommandContext(context.Background(), path, args...),
		log: &testkit.Log{}, told: make(chan struct{}, 1),
		updates: make(chan string, 100), waiting: map[int]chan answer{}, ended: make(chan struct{})}
	a.cmd.Env, a.cmd.Stderr = env, a.log
	a.cmd.WaitDelay = time.Second
	out, err := a.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if a.in, err = a.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if err := a.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		lines := bufio.NewReaderSize(out, 1<<16)
		for {
			line, err := lines.ReadBytes('\n')
			var m struct {
				answer
				ID     *int
				Method string
				Params struct{ URI string }
			}
			if json.Unmarshal(line, &m) == nil && m.ID != nil && m.Method == "" {
				a.mu.Lock()
				done := a.waiting[*m.ID]
				delete(a.waiting, *m.ID)
				a.mu.Unlock()
				if done != nil {
					done <- m.answer
				}
			}
			if m.Method == "notifications/resources/updated" {
				select {
				case a.told <- struct{}{}:
				default:
				}
				select {
				case a.updates <- m.Params.URI:
				default:
				}
			}
			if err != nil {
				close(a.ended)
				return
			}
		}
	}()
	_, err = a.ask(ctx, "initialize",
		map[string]any{"protocolVersion": "2025-11-25", "capabilities": map[string]any{},
			"clientInfo": map[string]any{"name": "bench", "version": "1"}})
	if err == nil {
		_, err = io.WriteString(a.in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\n")
	}
	if err != nil {
		a.close()
		return nil, fmt.Errorf("start %s: %w", filepath.Base(path), err)
	}
	return a, nil
}

func (a *agent) ask(ctx context.Context, method string, params any) (json.RawMessage, error) {
	done := make(chan answer, 1)
	a.mu.Lock()
	a.last++
	id := a.last
	a.waiting[id] = done
	a.mu.Unlock()
	text, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": id, "method": method,
		"params": params})
	if err != nil {
		return nil, err
	}
	if _, err := a.in.Write(append(text, '\n')); err != nil {
		return nil, fmt.Errorf("%s: %w; it said %s", method, err, a.log)
	}
	select {
	case got := <-done:
		if got.Error != nil {
			return nil, fmt.Errorf("%s: %s", method, got.Error.Message)
		}
		return got.Result, nil
	case <-a.ended:
		return nil, fmt.Errorf("%s: it has ended; it said %s", method, a.log)
	case <-ctx.Done():
		return nil, fmt.Errorf("%s: %w; it said %s", method, ctx.Err(), a.log)
	}
}

var errTool = errors.New("the tool says that it failed")

func (a *agent) tool(ctx context.Context, name string, arguments any) (string, error) {
	text, err := a.ask(ctx, "tools/call", map[string]any{"name": name, "arguments": arguments})
	if err != nil {
		return "", err
	}
	return toolText(name, text)
}

// toolText is the text of a tool's result.
func toolText(name string, text json.RawMessage) (string, error) {
	var result struct {
		Content []struct{ Text string }
		IsError bool
	}
	if err := json.Unmarshal(text, &result); err != nil {
		return "", err
	}
	all := ""
	for _, c := range result.Content {
		all += c.Text
	}
	if result.IsError {
		return "", fmt.Errorf("%s: %w: %s", name, errTool, all)
	}
	return all, nil
}

func (a *agent) read(ctx context.Context, uri string) (string, error) {
	text, err := a.ask(ctx, "resources/read", map[string]any{"uri": uri})
	if err != nil {
		return "", err
	}
	var result struct{ Contents []struct{ Text string } }
	if err := json.Unmarshal(text, &result); err != nil || len(result.Contents) == 0 {
		return "", fmt.Errorf("read %s: %s", uri, text)
	}
	return result.Contents[0].Text, nil
}

func (a *agent) subscribe(ctx context.Context, uri string) error {
	_, err := a.ask(ctx, "resources/subscribe", map[string]any{"uri": uri})
	return err
}

func (a *agent) toolNames(ctx context.Context) (names []string, err error) {
	text, err := a.ask(ctx, "tools/list", map[string]any{})
	if err != nil {
		return nil, err
	}
	var result struct{ Tools []struct{ Name string } }
	err = json.Unmarshal(text, &result)
	for _, t := range result.Tools {
		names = append(names, t.Name)
	}
	return names, err
}

// close closes the program's standard input, and kills the program after two seconds.
func (a *agent) close() {
	a.in.Close()
	select {
	case <-a.ended:
	case <-time.After(2 * time.Second):
		a.cmd.Process.Kill()
	}
	a.cmd.Wait()
}

// resident returns the memory in bytes of the processes with an entry. Shared memory counts in part
// for each.
func resident(entry string) (sum float64, err error) {
	pids := testkit.Processes(entry)
	if pids == nil {
		return 0, errors.New("no process found: they are looked for on Linux alone")
	}
	for _, pid := range pids {
		bytes, err := proportional(pid)
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // it may have ended meanwhile
			return 0, err
		}
		sum += bytes
	}
	return sum, nil
}
