package agents

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pagewire/pagewire/bridge"
	"github.com/pagewire/pagewire/bridge/gateway"
	"github.com/pagewire/pagewire/bridge/testkit"
)

// A console is an agent on stdio that sends and receives raw lines.
type console struct {
	t     *testing.T
	in    *io.PipeWriter
	out   *io.PipeReader
	lines *bufio.Reader
	done  chan error // receives the result of Lines
}

// serveLines connects an agent, and serves it by Lines.
func serveLines(ctx context.Context, g *gateway.Gateway, in io.Reader, out io.Writer) error {
	agent, err := g.Connect(gateway.TransportStdio)
	if err != nil {
		return err
	}
	return Lines(ctx, agent, g.MessageBytes(), in, out)
}

func stdio(t *testing.T, ctx context.Context, g *gateway.Gateway) *console {
	theirIn, in := io.Pipe()
	out, theirOut := io.Pipe()
	c := &console{t, in, out, bufio.NewReader(out), make(chan error, 1)}
	go func() {
		c.done <- serveLines(ctx, g, theirIn, theirOut)
		theirOut.Close()
		theirIn.Close()
	}()
	t.Cleanup(func() {
		in.Close()
		out.Close()
	})
	return c
}

// send may be called from any goroutine.
func (c *console) send(line string) {
	c.t.Helper()
	if _, err := io.WriteString(c.in, line); err != nil {
		c.t.Error(err)
	}
}

func (c *console) next() message {
	c.t.Helper()
	line, err := c.lines.ReadBytes('\n')
	if err != nil {
		c.t.Fatalf("no further line: %v", err)
	}
	return decode(c.t, line)
}

func (c *console) ended() error {
	c.t.Helper()
	return testkit.Receive(c.t, "Lines returns", c.done)
}

// A program that ends its input while its request waits for the first look at a browser is answered by what is known.
func TestInputThatEndsBeforeTheFirstLook(t *testing.T) {
	g := gateway.New(gateway.Options{})
	defer g.Close()
	g.Look()
	c := stdio(t, t.Context(), g)
	go func() {
		c.send(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},` +
			`"clientInfo":{"name":"a","version":"1"}}}` + "\n" + `{"jsonrpc":"2.0","id":2,"method":"resources/list"}` + "\n")
		c.in.Close()
	}()
	for _, id := range []string{"1", "2"} {
		line, err := c.lines.ReadString('\n')
		if err != nil || !strings.Contains(line, `"id":`+id+`,"result"`) {
			t.Fatalf("%s: %q, %v", id, line, err)
		}
	}
	if err := c.ended(); err != nil {
		t.Error(err)
	}
}

// A call and its withdrawal that come together, as after the process has stood still, reach the page together.
func TestCallThatIsWithdrawnAtOnce(t *testing.T) {
	g := gateway.New(gateway.Options{})
	defer g.Close()
	var frames []string
	p, err := g.Attach(gateway.PageInfo{Tab: "tab", Origin: origin, URL: origin + "/"},
		func(frame []byte) { frames = append(frames, string(frame)) })
	testkit.OK(t, err)
	testkit.OK(t, p.Receive([]byte(`[["hello",1,"0",{"epoch":"e"}],["setTools","[{\"name\":\"pay\",\"description\":\"d\",`+
		`\"inputSchema\":{\"type\":\"object\"}}]"]]`)))
	frames = nil
	testkit.OK(t, serveLines(t.Context(), g, strings.NewReader(call("1", "tools/call", `"name":"pay","arguments":{}`)+"\n"+
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`+"\n"), io.Discard))
	if len(frames) != 1 || !strings.Contains(frames[0], `["callTool",1,`) || !strings.Contains(frames[0], `["end",1`) {
		t.Errorf("the page gets %q", frames)
	}
}

func TestStdioClient(t *testing.T) {
	for era, version := range versions {
		t.Run(era, func(t *testing.T) {
			testkit.NoLeak(t)
			p := open(t)
			theirIn, in := io.Pipe()
			out, theirOut := io.Pipe()
			done := make(chan error, 1)
			go func() { done <- serveLines(t.Context(), p.g, theirIn, theirOut) }()
			a := watch(t, &mcp.IOTransport{Reader: out, Writer: in}, version)
			a.converse(p)
			a.Watch(origin + "/doc")
			a.Watch(origin + "/other")
			// go-sdk's Subscribe does not wait for the listen's acknowledgement.
			testkit.Eventually(t, "both are subscribed to", func() bool {
				return p.g.Snapshot().Stats.Subscriptions == 2
			})
			p.Set(origin+"/doc", "two")
			a.Told(origin + "/doc")
			if got := a.Text(origin + "/doc"); got != "two" {
				t.Errorf("read %q", got)
			}
			p.Set(origin+"/other", "2")
			a.Told(origin + "/other")
			in.Close()
			if err := <-done; err != nil {
				t.Error(err)
			}
			a.Close()
			testkit.Eventually(t, "nothing is left of the agent", func() bool { return held(p.g) == 0 })
		})
	}
}

// Lines may begin with a byte order mark, end in LF or CR LF, be blank, be invalid, or have no end.
func TestStdioLines(t *testing.T) {
	p := open(t)
	c := stdio(t, t.Context(), p.g)
	for _, test := range []struct {
		line string
		id   string
		code int
	}{
		{"\n\r\n  \n" + call("1", "resources/list", "") + "\r\n", `1`, 0},
		{"{\n", ``, -32700},
		{"\xff\xfe\n", ``, -32700},
		{"\ufeff\r\n\ufeff" + call("6", "resources/list", "") + "\n", `6`, 0},
		{"\ufeff" + `{"jsonrpc":"2.0","id":7,"method":"resources/list","params":{"x":"` +
			strings.Repeat("x", p.g.MessageBytes()) + `"}}` + "\n", `7`, -32600},
		{"\ufeff\ufeff{}\n", ``, -32700},
		{`{"jsonrpc":"2.0","id":8,"method":` + "\ufeff" + `"ping"}` + "\n", `8`, -32700},
		{`{"jsonrpc":"2.0","id":2,"method":"ping","params":{"x":"` + "\xff" + `"}}` + "\n", `2`, -32700},
		{"[]\n", ``, -32600},
		{"null\n", ``, -32600},
		{`{"jsonrpc":"2.0","id":{},"method":"ping"}` + "\n", ``, -32600},
		{`{"jsonrpc":"2.0","id":"` + strings.Repeat("i", 2000) + `","method":"ping"}` + "\n",
			`"` + strings.Repeat("i", 2000) + `"`, -32600},
		{`{"jsonrpc":"2.0","id":3,"method":"resources/list","params":{"x":"` + strings.Repeat("x", p.g.MessageBytes()) +
			`"}}` + "\n", `3`, -32600},
		// Most SDKs write the id last.
		{`{"method":"ping","params":{"x":"` + strings.Repeat("x", p.g.MessageBytes()) + `"},"jsonrpc":"2.0","id":"9"}` + "\n",
			`"9"`, -32600},
		{`{"method":"ping","params":` + strings.Repeat(`{"a":`, 70) + "1" + strings.Repeat("}", 70) +
			`,"id":10,"jsonrpc":"2.0"}` + "\n", `10`, -32700},
		{`{"method":"ping","params":{"x":"` + "\xff" + `"},"jsonrpc":"2.0","id":11}` + "\n", `11`, -32700},
		{`{"jsonrpc":"2.0","id":4,"method":"ping"}` + "\n", `4`, 0},
	} {
		go c.send(test.line)
		if m := c.next(); string(m.ID) != test.id || m.code() != test.code {
			t.Errorf("%.60q is answered %.60s with %d, want %.60s with %d", test.line, m.ID, m.code(), test.id,
				test.code)
		}
	}
	go func() {
		c.send(call("5", "resources/read", `"uri":"`+origin+`/doc"`)) // and no line end
		c.in.Close()
	}()
	if m := c.next(); m.Result == nil || m.Result.Contents[0].Text != "one" {
		t.Errorf("the last line is answered %+v", m)
	}
	if err := c.ended(); err != nil {
		t.Error(err)
	}
}

// The rest of a line that is too long is not held in memory.
func TestReadLine(t *testing.T) {
	const most = 1 << 20
	for _, n := range []int{1, most - 1, most, most + 1, most + 2, most + 3, 10 * most} {
		r := bufio.NewReaderSize(strings.NewReader(strings.Repeat("x", n)+"\nnext\n"), 1024)
		line, over, err := readLine(r, most)
		if err != nil || over != (n+1 > most+2) || over && len(line) != 2*bridge.PeekBytes || !over && len(line) != n+1 {
			t.Errorf("of %d bytes: %d, %v, %v", n, len(line), over, err)
		}
		if cap(line) > 2*most {
			t.Errorf("of %d bytes %d are held", n, cap(line))
		}
		if line, over, err := readLine(r, most); string(line) != "next\n" || over || err != nil {
			t.Errorf("after %d bytes: %q, %v, %v", n, line, over, err)
		}
	}
}

// At the end of in, Lines waits for the answers to earlier requests, and abandons requests that take too long.
func TestStdioEndOfInput(t *testing.T) {
	testkit.NoLeak(t)
	p := open(t)
	in := call("1", "resources/read", `"uri":"`+origin+`/slow"`) + "\n" + call("2", "resources/read",
		`"uri":"`+origin+`/doc"`) + "\n" + listen("3", origin+"/doc") + "\n"
	go func() {
		<-p.reading
		close(p.released)
	}()
	var out bytes.Buffer
	if err := serveLines(t.Context(), p.g, strings.NewReader(in), &out); err != nil {
		t.Fatal(err)
	}
	answers := map[string]message{}
	for line := range bytes.Lines(out.Bytes()) {
		m := decode(t, line)
		answers[string(m.ID)] = m
	}
	if a := answers["1"]; a.Result == nil || a.Result.Contents[0].Text != "released" {
		t.Errorf("the slow read is answered %+v", a)
	}
	if a := answers["2"]; a.Result == nil {
		t.Errorf("the other read is answered %+v", a)
	}

	p.released = make(chan struct{}) // is never closed
	out.Reset()
	if err := serveLines(t.Context(), p.g, strings.NewReader(call("1", "resources/read", `"uri":"`+origin+`/slow"`)+"\n"),
		&out); err != nil {
		t.Fatal(err)
	}
	<-p.gaveUp
	testkit.Eventually(t, "nothing is left", func() bool { return held(p.g) == 0 })
}

// When the context ends or the gateway closes, the agent gets the ends of its requests and listens.
func TestStdioGoesAway(t *testing.T) {
	for name, end := range map[string]func(*testPage, context.CancelFunc){
		"context": func(_ *testPage, cancel context.CancelFunc) { cancel() },
		"gateway": func(p *testPage, _ context.CancelFunc) { p.g.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			p := open(t)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			c := stdio(t, ctx, p.g)
			c.send(listen(`"l"`, origin+"/doc") + "\n")
			c.next()
			c.send(call("1", "resources/read", `"uri":"`+origin+`/slow"`) + "\n")
			<-p.reading
			end(p, cancel)
			if m := c.next(); string(m.ID) != "1" || m.code() != -32603 || m.Error.Data["reason"] != "shutdown" {
				t.Errorf("the read is answered %+v", m)
			}
			if m := c.next(); string(m.ID) != `"l"` || m.Result == nil || m.Result.ResultType != "complete" {
				t.Errorf("the listen ends with %+v", m)
			}
			if m := c.next(); m.Method != "notifications/cancelled" || string(m.Params.RequestID) != `"l"` {
				t.Errorf("then comes %+v", m)
			}
			if err := c.ended(); name == "context" && !errors.Is(err, context.Canceled) || name == "gateway" &&
				err != nil {
				t.Errorf("Lines returns %v", err)
			}
			if held(p.g) != 0 {
				t.Error("something is left")
			}
		})
	}
}

// The session of an agent that does not read its answers ends when 64 MiB are unread.
func TestStdioNotRead(t *testing.T) {
	p := open(t)
	p.Offer(origin+"/big", strings.Repeat("x", 4<<20))
	c := stdio(t, t.Context(), p.g)
	go func() {
		for i := range 100 {
			if _, err := io.WriteString(c.in,
				call(fmt.Sprint(i), "resources/read", `"uri":"`+origin+`/big"`)+"\n"); err != nil {
				return
			}
		}
	}()
	if err := c.ended(); !errors.Is(err, ErrNotRead) {
		t.Errorf("Lines returns %v", err)
	}
	if held(p.g) != 0 {
		t.Error("something is left")
	}
}

func TestStdioBrokenPipe(t *testing.T) {
	p := open(t)
	c := stdio(t, t.Context(), p.g)
	c.out.Close()
	c.send(`{"jsonrpc":"2.0","id":1,"method":"ping"}` + "\n")
	if err := c.ended(); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("Lines returns %v", err)
	}
}
