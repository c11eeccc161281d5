//go:build !js

package hub

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
)

// A vector is a message and what comes of it: "ok", or words of the error.
type vector struct{ About, From, Message, Hex, Expect string }

func vectors(t testing.TB) (all []vector) {
	t.Helper()
	text, err := os.ReadFile("testdata/messages.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	for i, v := range all {
		if raw, err := hex.DecodeString(v.Hex); err != nil {
			t.Fatal(err)
		} else if v.Hex != "" {
			all[i].Message = string(raw)
		}
	}
	return all
}

func TestVectors(t *testing.T) {
	for _, v := range vectors(t) {
		t.Run(v.About, func(t *testing.T) {
			var err error
			switch v.From {
			case "joiner":
				_, err = decodeHello([]byte(v.Message))
			case "hub":
				_, err = decodeNote([]byte(v.Message))
			default:
				t.Fatalf("from %q", v.From)
			}
			switch {
			case v.Expect == "ok" && err != nil:
				t.Errorf("%s: %v", v.Message, err)
			case v.Expect != "ok" && (err == nil || !strings.Contains(err.Error(), v.Expect)):
				t.Errorf("%s: %v, want %s", v.Message, err, v.Expect)
			}
		})
	}
}

func TestMessagesAreBounded(t *testing.T) {
	pad := func(n int) string { return strings.Repeat(" ", n) }
	small := `{"type":"pagewire:hello","protocol":1,"build":"1"}`
	if _, err := decodeHello([]byte(small + pad(maxHello-len(small)))); err != nil {
		t.Errorf("the longest hello: %v", err)
	}
	if _, err := decodeHello([]byte(small + pad(maxHello-len(small)+1))); err == nil ||
		!strings.Contains(err.Error(), "4096 are the most") {
		t.Errorf("one that is longer: %v", err)
	}
	small = `{"type":"pagewire:alive"}`
	if _, err := decodeNote([]byte(small + pad(maxNote-len(small)))); err != nil {
		t.Errorf("the longest note: %v", err)
	}
	if _, err := decodeNote([]byte(small + pad(maxNote-len(small)+1))); err == nil ||
		!strings.Contains(err.Error(), "262144 are the most") {
		t.Errorf("one that is longer: %v", err)
	}
	share := map[string]string{}
	for i := range maxShared + 1 {
		share[fmt.Sprint(i)] = ""
	}
	if _, err := decodeNote(encode(note{typeShare, share})); err == nil ||
		!strings.Contains(err.Error(), "64 are the most") {
		t.Errorf("one that shares too much: %v", err)
	}
	delete(share, "0")
	if n, err := decodeNote(encode(note{typeShare, share})); err != nil || len(n.Share) != maxShared {
		t.Errorf("one that shares as much as may be: %v", err)
	}
}

// What is read is what was meant: written again and read again it is the same.
func FuzzHello(f *testing.F) {
	for _, v := range vectors(f) {
		f.Add([]byte(v.Message))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		h, err := decodeHello(text)
		if err != nil {
			if h != (hello{}) || strings.ContainsFunc(err.Error(), func(r rune) bool { return r < ' ' || r == 0x7f }) {
				t.Errorf("%q gives %+v and the error %q", text, h, err)
			}
			return
		}
		if again, err := decodeHello(encode(h)); err != nil || again != h {
			t.Errorf("%+v is %+v, %v again", h, again, err)
		}
	})
}

func FuzzNote(f *testing.F) {
	for _, v := range vectors(f) {
		f.Add([]byte(v.Message))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		n, err := decodeNote(text)
		if err != nil {
			if !reflect.DeepEqual(n, note{}) {
				t.Errorf("%q gives %+v and the error %q", text, n, err)
			}
			return
		}
		if len(n.Share) == 0 {
			n.Share = nil // what is left out when it is written
		}
		if again, err := decodeNote(encode(n)); err != nil || !reflect.DeepEqual(again, n) {
			t.Errorf("%+v is %+v, %v again", n, again, err)
		}
	})
}
