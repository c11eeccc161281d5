//go:build !js

package keeper

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/pagewire/pagewire/bridge/testkit"
)

const (
	sessionA = "0123456789ABCDEF0123456789ABCDEF"
	sessionB = "FEDCBA9876543210FEDCBA9876543210"
)

func TestFramesAreFoundHoweverTheyArrive(t *testing.T) {
	long := strings.Repeat("x", 3*readSize)
	all := []string{"{}", "", long, "a", long + "y", "b"}
	text := strings.Join(all, "\x00") + "\x00"
	for name, from := range map[string]io.Reader{
		"at once": strings.NewReader(text), "by the byte": iotest.OneByteReader(strings.NewReader(text)),
		"by halves": iotest.HalfReader(strings.NewReader(text)),
	} {
		f := newFrames(from, len(long)+10)
		for i, want := range all {
			got, err := f.next()
			if err != nil || string(got) != want+"\x00" {
				t.Fatalf("%s, frame %d: %d bytes, %v; want %d", name, i, len(got), err, len(want)+1)
			}
		}
		if _, err := f.next(); err != io.EOF {
			t.Errorf("%s: at the end: %v", name, err)
		}
	}
	// What ends without a NUL is no frame.
	if got, err := newFrames(strings.NewReader("{}"), 10).next(); err != io.EOF {
		t.Errorf("%q, %v", got, err)
	}
}

func TestAFrameThatIsTooLongIsPassedOverAndTakesNoMemory(t *testing.T) {
	const limit = 1 << 20
	begin, end := `{"id":7,"result":{"x":"`, `"},"sessionId":"`+sessionA+`"}`+"\x00"
	f := newFrames(io.MultiReader(
		strings.NewReader("{}\x00"+begin), io.LimitReader(testkit.Endless{}, 100*limit),
		strings.NewReader(end+"{\"next\":1}\x00"),
	), limit)
	f.skips = true
	if got, err := f.next(); err != nil || string(got) != "{}\x00" {
		t.Fatal(string(got), err)
	}
	edges, err := f.next()
	if !errors.Is(err, errTooLong) || !bytes.HasPrefix(edges, []byte(begin)) || !bytes.HasSuffix(edges, []byte(end)) ||
		len(edges) > 2*edge {
		t.Fatalf("%q, %v", edges, err)
	}
	if len(f.buf) > limit+readSize {
		t.Errorf("it has a buffer of %d bytes", len(f.buf))
	}
	if h, ok := ofBrowser(edges); !ok || h.id != 7 || string(h.session) != sessionA {
		t.Errorf("its edges say %+v, %v", h, ok)
	}
	if got, err := f.next(); err != nil || string(got) != "{\"next\":1}\x00" {
		t.Errorf("behind it: %q, %v", got, err)
	}
	if f.next(); len(f.buf) != readSize {
		t.Errorf("a buffer of %d bytes is kept", len(f.buf))
	}
}

func TestAFrameThatIsTooLongIsNotWaitedFor(t *testing.T) {
	r, w := io.Pipe()
	go io.Copy(w, io.LimitReader(testkit.Endless{}, 2*readSize)) // and then nothing
	if _, err := newFrames(r, readSize).next(); !errors.Is(err, errTooLong) {
		t.Error(err)
	}
}

func TestWhereAMessageBelongs(t *testing.T) {
	for text, want := range map[string]head{
		`{"id":3,"result":{},"sessionId":"` + sessionA + `"}`: {id: 3,
			session: []byte(sessionA)},
		`{"id":3,"error":{"code":-1},"sessionId":"` + sessionA + `"}`: {id: 3,
			session: []byte(sessionA)},
		`{"method":"A.b","params":{"sessionId":"x"},"sessionId":"` + sessionA + `"}`: {method: []byte("A.b"),
			session: []byte(sessionA)},
		`{"method":"A.b","params":{"sessionId":"` + sessionB + `"}}`:          {method: []byte("A.b")},
		`{"method":"A.b","params":{"s":",\"sessionId\":\"` + sessionB + `"}}`: {method: []byte("A.b")},
		`{"sessionId":"short","id":4,"result":{"id":5}}`: {id: 4,
			session: []byte("short")},
		` { "method" : "A.b" , "sessionId" : "` + sessionA + `" , "id" : 6 } `: {method: []byte("A.b"),
			session: []byte(sessionA), id: 6},
		`{"params":{"method":"C.d"},"method":"A.b","sessionId":"` + sessionA + `"}`: {method: []byte("A.b"),
			session: []byte(sessionA)},
		`{"id":"x","sessionId":5}`: {session: []byte("5")},
		`{}`:                       {},
		`{"id":9,"method":"Runtime.evaluate","params":{"expression":"\ud800 \u0000 é"}}`: {id: 9,
			method: []byte("Runtime.evaluate")},
	} {
		got, ok := ofBrowser([]byte(text + "\x00"))
		if !ok || got.id != want.id || !bytes.Equal(got.session, want.session) ||
			!bytes.Equal(got.method, want.method) {
			t.Errorf("%s: %+v, %v", text, got, ok)
		}
		var rest map[string]any
		if cut := text[:got.from] + text[got.to:]; json.Unmarshal([]byte(cut), &rest) != nil ||
			rest["sessionId"] != nil {
			t.Errorf("%s without its session: %s", text, cut)
		}
		client, ok := ofClient([]byte(text + "\x00"))
		if !ok || !bytes.Equal(client.session, want.session) {
			t.Errorf("%s by a client: %+v, %v", text, client, ok)
		}
	}
	for _, text := range []string{``, ` `, `[]`, `{`, `x`, `"x"`, `{"id":1`, `{"id" 1}`, `{"a":1,}`, "\xff"} {
		if h, ok := ofClient([]byte(text + "\x00")); ok {
			t.Errorf("%q by a client: %+v", text, h)
		}
		if h, ok := ofBrowser([]byte(text + "\x00")); ok {
			t.Errorf("%q by the browser: %+v", text, h)
		}
	}
}

// What is read at a glance is what is read word by word, as long as it is JSON.
func FuzzWhereAMessageBelongs(f *testing.F) {
	for _, text := range []string{
		`{"id":3,"result":{},"sessionId":"` + sessionA + `"}`,
		`{"method":"A.b","params":{"sessionId":"` + sessionB + `"},"sessionId":"` + sessionA + `"}`,
		`{"id":1,"sessionId":"` + sessionA + `","method":"A.b"}`,
		`{"method":"a\",\"sessionId\":\"` + sessionA + `"}`,
		`{"id":1e3,"x":[{"id":2}]}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		frame := append(bytes.Clone(text), 0)
		quick, ok := ofBrowser(frame)
		if client, valid := ofClient(frame); valid && client.session != nil && bytes.IndexByte(text, '{') < 0 {
			t.Errorf("%q is no object, and has the session %q", text, client.session)
		}
		var members map[string]json.RawMessage
		if !ok || bytes.IndexByte(text, 0) >= 0 || json.Unmarshal(text, &members) != nil {
			return
		}
		slow, ok := scan(frame, false)
		if !ok {
			return // it has a name twice, or what json admits and jsontext does not
		}
		if !bytes.Equal(quick.session, slow.session) || quick.session != nil &&
			(quick.from != slow.from || quick.to != slow.to) {
			t.Errorf("%q: %+v at a glance, %+v word by word", text, quick, slow)
		}
		cut := append(bytes.Clone(text[:quick.from]), text[quick.to:]...)
		if quick.session != nil && !json.Valid(cut) {
			t.Errorf("%q without its session is %q", text, cut)
		}
	})
}
