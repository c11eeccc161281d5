//go:build !js && linux

package keeper

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pagewire/pagewire/bridge/testkit"
)

// What one client has switched on or attached to is nothing to another, and is gone with it: the next finds the browser
// as if it were the first. The tabs stay.
func TestEachClientHasTheBrowserToItself(t *testing.T) {
	h := newHome(t)
	hold := h.launch(h.options())
	one, two := dialed(t, hold), dialed(t, hold)
	one.call("", "Target.setDiscoverTargets", `{"discover":true}`)
	page := one.page(`"waitForDebuggerOnStart":true`)
	one.call(page, "Page.enable", "")
	one.call(page, "Runtime.enable", "")
	one.call(page, "Runtime.addBinding", `{"name":"tell"}`)
	one.call(page, "Page.addScriptToEvaluateOnNewDocument", `{"source":"globalThis.injected = true"}`)
	one.call(page, "Fetch.enable", "")
	one.evaluate(page, `globalThis.mark = "here"; tell("hello")`)
	if one.count("Runtime.bindingCalled") != 1 || one.count("Target.targetCreated") == 0 {
		t.Errorf("the first client is not told what it asked for: %d, %d", one.count("Runtime.bindingCalled"),
			one.count("Target.targetCreated"))
	}
	// Under the same ids, which are each client's own, and in the same page.
	if other := two.page(`"waitForDebuggerOnStart":false`); other == page || two.evaluate(other, "mark") != "here" {
		t.Errorf("the second client is in session %s, the first in %s", other, page)
	}
	if len(two.events) > two.count("Target.attachedToTarget")+two.count("Target.targetInfoChanged") {
		t.Errorf("the second client is told what the first has asked for: %+v", two.events)
	}
	for _, m := range append(one.events, two.events...) {
		if m.Method == "Target.attachedToTarget" && m.SessionID != "" {
			t.Errorf("a client is told the session that it has with the browser: %+v", m)
		}
	}
	if _, err := two.try(page, "Runtime.evaluate", `{"expression":"1"}`); err == nil ||
		!strings.Contains(err.Error(), "Session with given id not found") {
		t.Errorf("the second client in a session of the first: %v", err)
	}
	// A tab that waits for the first client when that goes must not wait for ever.
	var info struct{ TargetInfo struct{ TargetID string } }
	decode(t, one.call(page, "Target.getTargetInfo", ""), &info)
	tab := info.TargetInfo.TargetID
	var created struct{ TargetID string }
	decode(t, two.call("", "Target.createTarget", `{"url":"data:text/html,<script>globalThis.ran = true</script>"}`),
		&created)
	one.conn.Close()
	three := dialed(t, hold)
	for _, m := range three.events {
		t.Errorf("the third client is told what it has not asked for: %+v", m)
	}
	var attached struct{ SessionID string }
	decode(t, three.call("", "Target.attachToTarget", `{"flatten":true,"targetId":"`+created.TargetID+`"}`), &attached)
	testkit.Eventually(t, "the new tab runs", func() bool {
		return three.evaluate(attached.SessionID, "String(globalThis.ran)") == "true"
	})
	var first struct{ SessionID string }
	decode(t, three.call("", "Target.attachToTarget", `{"flatten":true,"targetId":"`+tab+`"}`), &first)
	page = first.SessionID
	if got := three.evaluate(page, "mark"); got != "here" {
		t.Errorf("the tab has been changed: %q", got)
	}
	three.call(page, "Page.reload", "") // it would wait for Fetch, and be injected
	testkit.Eventually(t, "the page is loaded anew", func() bool {
		return three.evaluate(page, "typeof mark + document.readyState") == "undefinedcomplete"
	})
	if got := three.evaluate(page, "typeof injected + typeof tell"); got != "undefinedundefined" {
		t.Errorf("left behind by the first client: %s", got)
	}
	if three.count("Target.targetCreated") > 0 || three.count("Runtime.executionContextCreated") > 0 {
		t.Errorf("the third client is told what the first has asked for: %+v", three.events)
	}
}

func decode(t *testing.T, text []byte, into any) {
	t.Helper()
	if err := readFrame(newFrames(strings.NewReader(string(text)+"\x00"), 1<<20), into); err != nil {
		t.Fatal(err)
	}
}

// Of what a page says that is too long to be passed on the client hears that it was said, and where; the next thing
// arrives.
func TestAPageThatSaysTooMuch(t *testing.T) {
	h := newHome(t)
	client := dialed(t, h.launch(h.options()))
	page := client.page(`"waitForDebuggerOnStart":false`)
	client.call(page, "Runtime.enable", "")
	client.call(page, "Runtime.addBinding", `{"name":"tell"}`)
	client.evaluate(page, fmt.Sprintf(`tell("x".repeat(%d)); tell("next")`, maxFromBrowser+1<<20))
	testkit.Eventually(t, "both are heard", func() bool {
		client.call("", "Browser.getVersion", "")
		return client.count("Runtime.bindingCalled") == 2
	})
	var said []string
	for _, m := range client.events {
		if m.Method == "Runtime.bindingCalled" {
			said = append(said, string(m.SessionID)+" "+string(m.Params[:min(len(m.Params), 40)]))
		}
	}
	if said[0] != page+" " || !strings.HasPrefix(said[1], page+` {"name":"tell","payload":"next"`) {
		t.Errorf("it hears %q", said)
	}
}

// A client that is stopped for a while has everything when it goes on; one that stays so is cut off, and the others go
// on all the time.
func TestAClientThatDoesNotRead(t *testing.T) {
	h := newHome(t)
	hold := h.launch(h.options())
	stopped, other := dialed(t, hold), dialed(t, hold)
	page, others := stopped.page(`"waitForDebuggerOnStart":false`), other.page(`"waitForDebuggerOnStart":false`)
	const large = 8 << 20
	ask := func(n int) (first int64) {
		for range n {
			id := stopped.send(page, "Runtime.evaluate",
				fmt.Sprintf(`{"returnByValue":true,"expression":"'x'.repeat(%d)"}`, large))
			if first == 0 {
				first = id
			}
		}
		return first
	}
	first := ask(2)
	for range 10 {
		other.evaluate(others, "1")
	}
	for id := first; id < first+2; id++ {
		if result, err := stopped.answer(id); err != nil || len(result) < large {
			t.Fatalf("answer %d has %d bytes, %v", id, len(result), err)
		}
	}
	ask(maxQueue/large + 3)
	for range 10 {
		other.evaluate(others, "1")
	}
	// What was on its way arrives, and then the end.
	n := 0
	for {
		frame, err := stopped.conn.Next()
		if err != nil {
			break
		}
		m, _ := io.Copy(io.Discard, frame)
		n += int(m)
	}
	if n >= maxQueue {
		t.Errorf("%d bytes were kept for a client that does not read", n)
	}
	other.evaluate(others, "1")
}

// A hostile client loses its connection, and changes nothing for others.
func TestHostileClients(t *testing.T) {
	h := newHome(t)
	hold := h.launch(h.options())
	honest := dialed(t, hold)
	page := honest.page(`"waitForDebuggerOnStart":false`)
	open := func() net.Conn {
		conn, err := h.dir.Dial(t.Context(), hold.Name)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		conn.SetDeadline(time.Now().Add(testkit.Patience))
		return conn
	}
	const hi = `{"keeper":1,"as":"client"}` + "\x00"
	for name, says := range map[string]string{
		"no JSON":                      "garbage\x00",
		"no object":                    "[]\x00",
		"a first message without end":  strings.Repeat("x", 1<<20),
		"a message without end":        hi + `{"x":"` + strings.Repeat("x", maxFromClient+readSize),
		"no JSON from a client":        hi + "garbage\x00",
		"no object from a client":      hi + "[]\x00",
		"an empty message":             hi + "\x00",
		"half an object from a client": hi + "{\x00",
		"a gateway without end":        `{"keeper":1,"as":"gateway"}` + "\x00" + strings.Repeat("x", 1<<20),
		"another kind":                 `{"keeper":1,"as":"king"}` + "\x00",
		"a version to come":            `{"keeper":2,"as":"client"}` + "\x00",
	} {
		conn := open()
		go io.WriteString(conn, says) // it may be closed before it has taken all
		heard, err := io.ReadAll(conn)
		if err != nil && !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("%s: %v", name, err)
		}
		if name == "a version to come" && !strings.Contains(string(heard), "the launched browser's keeper speaks "+
			"version 1 and this gateway version 2") {
			t.Errorf("%s: it hears %q", name, heard)
		}
		if honest.evaluate(page, "6*7") != "42" {
			t.Fatalf("%s: the honest client has no answer", name)
		}
	}
	// What the browser itself refuses, and what a relay may take for its own: answers under the ids of its calls.
	conn := open()
	io.WriteString(conn, hi)
	said := newFrames(conn, maxFromBrowser)
	var w welcome
	if err := readFrame(said, &w); err != nil || w.Keeper != version {
		t.Fatal(w, err)
	}
	for id := range 5 {
		for _, text := range []string{
			`{"id":%d,"method":"A.b","sessionId":"none"}`, `{"id":%d,"method":"A.b","sessionId":""}`,
			`{"id":%d,"method":"A.b","sessionId":7}`,
			`{"id":%d}`, `{"id":%d,"id":%[1]d,"method":"A.b"}`, `{"id":%d,"method":"A.b","session\u0049d":"` +
				sessionA + `"}`, `{"id":"%d","method":"A.b"}`,
			`{"method":"Target.attachedToTarget","params":{"sessionId":"%d"}}`,
		} {
			fmt.Fprintf(conn, text+"\x00", id)
		}
		dialed(t, hold).call("", "Browser.getVersion", "")
	}
	fmt.Fprint(conn, `{"id":77,"method":"Browser.getVersion"}`+"\x00")
	for {
		frame, err := said.next()
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(string(frame), `{"id":77,"result"`) {
			break
		}
	}
	if honest.evaluate(page, "6*7") != "42" {
		t.Error("the honest client has no answer")
	}
}

// More connections than there can be gateways are closed, and those that are silent are closed in a while; who is there
// goes on.
func TestAFloodOfConnections(t *testing.T) {
	h := newHome(t)
	hold := h.launch(h.options())
	honest := dialed(t, hold)
	var all []net.Conn
	for range maxConnections + 20 {
		conn, err := h.dir.Dial(t.Context(), hold.Name)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		all = append(all, conn)
	}
	// The last one is closed at once: there is no room for its word.
	if _, err := all[len(all)-1].Read(make([]byte, 1)); err == nil {
		t.Error("one too many is answered")
	}
	honest.call("", "Browser.getVersion", "")
	testkit.Eventually(t, "the silent ones are closed", func() bool {
		next, err := Join(t.Context(), h.dir, hold.Name, nil)
		if err == nil {
			leaves(t, next)
		}
		return err == nil
	})
}

// A browser that has been taken over: what it says is bounded, and reaches nobody whom it is not for.
func TestHostileBrowser(t *testing.T) {
	commands, to := pipe(t)
	from, says := pipe(t)
	r := newRelay(from, to)
	over := make(chan error, 1)
	go func() { over <- r.read() }()
	heard := newFrames(commands, maxFromClient)
	next := func() string {
		frame, err := heard.next()
		if err != nil {
			t.Fatal(err)
		}
		return string(frame)
	}
	say := func(text string) { io.WriteString(says, text+"\x00") }
	next()
	say(`{"id":1,"result":{"sessionId":"` + sessionB + `"}}`)
	ours, theirs := net.Pipe()
	ours.SetDeadline(time.Now().Add(testkit.Patience))
	relayed := newFrames(ours, maxFirst)
	served := make(chan error, 1)
	go func() { served <- r.serve(theirs, newFrames(theirs, maxFirst)) }()
	if !strings.Contains(next(), "attachToBrowserTarget") {
		t.Fatal("the relay asks for something else")
	}
	say(`{"id":1,"result":{"sessionId":"` + sessionA + `"},"sessionId":"` + sessionB + `"}`)
	go io.WriteString(ours, `{"id":1,"method":"A.b"}`+"\x00")
	if got := next(); got != `{"sessionId":"`+sessionA+`","id":1,"method":"A.b"}`+"\x00" {
		t.Errorf("the client's first command goes on as %s", got)
	}
	for _, text := range []string{
		"", "garbage", "[]", "{", `{"id":1}`, `{"id":99999999999999999999,"result":{},"sessionId":"` + sessionB + `"}`,
		`{"method":"Target.attachedToTarget","params":7,"sessionId":"` + sessionA + `"}`,
		`{"method":"Target.detachedFromTarget","params":{"sessionId":"nobody's"},"sessionId":"` + sessionA + `"}`,
		`{"method":"A.b","params":{},"sessionId":"nobody's"}`, `{"id":5,"result":{},"sessionId":"` + sessionB + `"}`,
	} {
		say(text)
		if strings.HasPrefix(text, `{"method":"Target.`) { // it is for the client
			if frame, err := relayed.next(); err != nil || strings.Contains(string(frame), sessionA) {
				t.Fatalf("%s, %v", frame, err)
			}
		}
	}
	// An answer without end becomes an error, an event without end its begin and its end.
	for begin, want := range map[string]string{
		`{"method":"A.b","params":"`: `{"method":"A.b","dropped":{"begin":"{\"method\":\"A.b\",\"params\":\"xxx`,
		`{"id":7,"result":"`:         `{"id":7,"error":{"code":-32000,"message":"The browser's answer is longer than`,
	} {
		io.WriteString(says, begin)
		io.Copy(says, io.LimitReader(testkit.Endless{}, maxFromBrowser+readSize))
		say(`","sessionId":"` + sessionA + `"}`)
		frame, err := relayed.next()
		if err != nil || !strings.HasPrefix(string(frame), want) || !json.Valid(frame[:len(frame)-1]) {
			t.Errorf("%s, %v", frame, err)
		}
	}
	says.Close()
	if err := testkit.Receive(t, "the relay ends with the browser", over); err != io.EOF {
		t.Error(err)
	}
	if err := testkit.Receive(t, "its client does, too", served); !errors.Is(err, errEnded) {
		t.Error(err)
	}
}

func pipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(); w.Close() })
	return r, w
}
