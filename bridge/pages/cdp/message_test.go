package cdp

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"

	"github.com/chromedp/cdproto/cdp/jsonv2"
	protocol "github.com/chromedp/cdproto/runtime"

	"github.com/pagewire/pagewire/bridge/testkit"
)

const sessionID = "0123456789ABCDEF0123456789ABCDEF"

// event is the browser's event for a page's call of a binding. The text is quoted.
func event(quoted string) string {
	return `{"method":"Runtime.bindingCalled","params":{"name":"pagewire_X_1","payload":` + quoted +
		`,"executionContextId":3},"sessionId":"` + sessionID + `"}`
}

func TestMessagesHoweverTheyArrive(t *testing.T) {
	long := strings.Repeat("a\"\\\né𝄞\x7f", 3*readSize)
	d := newDecoder()
	for _, payload := range []string{"", "x", "l[[\"hello\"]]", long, "b"} {
		quoted, _ := json.Marshal(payload)
		ascii := []byte(nil)
		for _, r := range string(quoted) { // as Chromium quotes it
			switch {
			case r < 0x7f:
				ascii = append(ascii, byte(r))
			case r < 0x10000:
				ascii = fmt.Appendf(ascii, `\u%04X`, r)
			default:
				ascii = fmt.Appendf(ascii, `\u%04X\u%04x`, 0xd800+(r-0x10000)>>10, 0xdc00+(r-0x10000)&0x3ff)
			}
		}
		for name, from := range map[string]io.Reader{
			"at once":     strings.NewReader(event(string(ascii))),
			"by the byte": iotest.OneByteReader(strings.NewReader(event(string(ascii)))),
			"not escaped": iotest.HalfReader(strings.NewReader(event(string(quoted)))),
			"otherwise": strings.NewReader(`{"sessionId":"` + sessionID +
				`","params":{"executionContextId":3,"payload":` + string(quoted) +
				`,"name":"pagewire_X_1"},"method":"Runtime.bindingCalled"}`),
		} {
			m, err := d.decode(from)
			if err != nil {
				t.Fatalf("%s, %d bytes: %v", name, len(payload), err)
			}
			if c := m.call(); m.Session != sessionID || c == nil || c.binding != "pagewire_X_1" || c.context != 3 ||
				string(c.payload) != payload {
				t.Errorf("%s, %d bytes: it is %.200v", name, len(payload), m)
			}
		}
	}
	if m, err := d.decode(strings.NewReader(`{"id":7,"result":{"x":1},"sessionId":"` + sessionID + `"}`)); err != nil ||
		m.ID != 7 || string(m.Result) != `{"x":1}` {
		t.Errorf("an answer is %+v, %v", m, err)
	}
}

// A message that is too long is dropped while it is read, and its sender is still known.
func TestMessagesThatAreTooLong(t *testing.T) {
	const size = 40 << 20
	fill := func(begin, end string) io.Reader {
		return io.MultiReader(strings.NewReader(begin), io.LimitReader(testkit.Endless{}, size), strings.NewReader(end))
	}
	d := newDecoder()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	begin, end, _ := strings.Cut(event(`"@"`), "@")
	m, err := d.decode(fill(begin, end))
	if err != nil || m.Session != sessionID || m.call().payload != nil || m.call().context != 3 {
		t.Errorf("a page's word is %+v, %v", m, err)
	}
	runtime.ReadMemStats(&after)
	if took := (after.TotalAlloc - before.TotalAlloc) >> 20; took > 64 {
		t.Errorf("40 MiB took %d MiB", took)
	}
	m, err = d.decode(fill(`{"id":7,"result":{"exceptionDetails":{"text":"`, `"}},"sessionId":"`+sessionID+`"}`))
	if err != nil || m.ID != 7 || m.Session != sessionID || m.Error == nil ||
		!strings.Contains(m.Error.Message, "the limit is 17825792 bytes") {
		t.Errorf("an answer is %+v, %v", m, err)
	}
	m, err = d.decode(fill(`{"method":"WebMCP.toolResponded","params":{"invocationId":"I1","output":"`,
		`"},"sessionId":"`+sessionID+`"}`))
	if err != nil || m.Method != "WebMCP.toolResponded" || m.Session != sessionID || m.Dropped == nil ||
		m.Dropped.toolCall() != "I1" || m.Params != nil {
		t.Errorf("an event is %+v, %v", m, err)
	}
	// A page cannot name another's context: within a text each quote has a backslash.
	if e := (&edges{End: `\",\"executionContextId\":4},\"sessionId\":\"S\"}","executionContextId":3},"sessionId":"S"}`}); e.context() != 3 {
		t.Errorf("the context is %d", e.context())
	}
	if m, err := d.decode(strings.NewReader(event(`"x"`))); err != nil || string(m.call().payload) != "x" ||
		cap(d.text) > retained {
		t.Errorf("the next is %+v, %v; a buffer of %d bytes is kept", m, err, cap(d.text))
	}
}

func TestWhatIsNoMessage(t *testing.T) {
	whole := event(`"a\u00e9\ud834\udd1e"`)
	for n := range len(whole) {
		if m, err := newDecoder().decode(strings.NewReader(whole[:n])); err == nil {
			t.Fatalf("%q is %+v", whole[:n], m)
		}
	}
	for _, text := range []string{"", "x", "[]", event(`"\x"`), event(`"\u12x4"`), event(`"x"`) + "}", event(`"x"y`)} {
		if m, err := newDecoder().decode(strings.NewReader(text)); err == nil {
			t.Errorf("%q is %+v", text, m)
		}
	}
	broken := errors.New("the wire is cut")
	if _, err := newDecoder().decode(
		io.MultiReader(strings.NewReader(whole[:60]), iotest.ErrReader(broken))); !errors.Is(err, broken) {
		t.Errorf("the connection's error is %v", err)
	}
}

// A text that is unquoted while it arrives is the same as from a decoder of JSON.
func FuzzMessage(f *testing.F) {
	for _, text := range []string{`"x"`, `"\"\\\/\b\f\n\r\t"`, `"é𝄞"`, `"\u00e9\ud834\udd1e"`, `"\ud834"`, `"\ud834x"`,
		`"\ud834\n"`, `"\udd1e\ud834"`, `"\ud834\ud834\udd1e"`, `"x","y":"z"`, `""`, `7`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, quoted []byte) {
		text := event(string(quoted))
		m, err := newDecoder().decode(strings.NewReader(text))
		var want struct {
			Params  protocol.EventBindingCalled `json:"params"`
			Session string                      `json:"sessionId"`
		}
		if jsonv2.Unmarshal([]byte(text), &want, decodeOptions) != nil || !json.Valid(quoted) || quoted[0] != '"' ||
			!utf8.Valid(quoted) {
			return // a browser sends only strings of Unicode
		}
		if err != nil || m.call() == nil {
			t.Fatalf("%s is %+v, %v", text, m, err)
		}
		if got := m.call(); string(got.payload) != want.Params.Payload ||
			got.context != want.Params.ExecutionContextID {
			t.Errorf("%s is %q in %d, want %q in %d", text, got.payload, got.context, want.Params.Payload,
				want.Params.ExecutionContextID)
		}
	})
}

func BenchmarkDecode(b *testing.B) {
	for name, text := range map[string]string{"100": strings.Repeat("x", 100), "1M": strings.Repeat("x", 1<<20),
		"1M-quotes": strings.Repeat(`\"text\":`, 100_000)} {
		b.Run(name, func(b *testing.B) {
			whole := event(`"` + text + `"`)
			b.SetBytes(int64(len(whole)))
			b.ReportAllocs()
			d := newDecoder()
			for b.Loop() {
				if _, err := d.decode(strings.NewReader(whole)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
